# Contract: a cell's data, its card, its reference nets and the nets that its expansion keeps
#           -> <results>/certify/{routes,ladder}/...; collected per data set and arch by the rule `collect`.


rule certify:
    input:
        base="<results>/prepare_dataset/splits/{dataset}.parquet",
        card="<results>/describe_dataset/card/{dataset}.parquet",
        fresh=fresh_rows("certify"),
        checkpoints=f"<results>/{paths.cell_checkpoints('train_baseline')}",
        expanded=f"<results>/{paths.cell_checkpoints('expand_depth')}",
    output:
        routes=f"<results>/{paths.cell_table('certify', 'routes')}",
        ladder=f"<results>/{paths.cell_table('certify', 'ladder')}",
    log:
        f"<logs>/certify/{paths.CELL}.log",
    priority: PLAN.priority
    conda:
        "../../environment.yml"
    threads: resource("certify", "threads")
    resources:
        mem_mb=resource("certify", "mem_mb"),
        runtime=resource("certify", "runtime"),
        gpu=gpus("certify"),
        gres=gres("certify"),
    params:
        root=run_root,
        cell=job_params("certify"),
        code=job_code("certify"),
        fresh=fresh_argument,
    shell:
        "python -m jumpboard.stages.certify --root {params.root:q} --params {params.cell:q}"
        " --code {params.code} --threads {threads} --inputs base={input.base:q} card={input.card:q}"
        " checkpoints={input.checkpoints:q} expanded={input.expanded:q} {params.fresh:q}"
        " --outputs routes={output.routes:q} ladder={output.ladder:q} >> {log:q} 2>&1"
