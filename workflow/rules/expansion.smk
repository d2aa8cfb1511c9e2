# Contract: a cell's checkpoints and its data -> <results>/expand_depth/{jumpboard,step_gains,expansion}/...,
#           <results>/expand_width/widening/..., <results>/expand_chain/chain/..., and the checkpoints of chains and of
#           expansions in depth (which hold none where the config keeps no nets);
#           collected per data set and arch by the rule `collect`.


rule expand_depth:
    input:
        base="<results>/prepare_dataset/splits/{dataset}.parquet",
        fresh=fresh_rows("expand_depth"),
        checkpoints=f"<results>/{paths.cell_checkpoints('train_baseline')}",
    output:
        jumpboard=f"<results>/{paths.cell_table('expand_depth', 'jumpboard')}",
        step_gains=f"<results>/{paths.cell_table('expand_depth', 'step_gains')}",
        expansion=f"<results>/{paths.cell_table('expand_depth', 'expansion')}",
        checkpoints=f"<results>/{paths.cell_checkpoints('expand_depth')}",
    log:
        f"<logs>/expand_depth/{paths.CELL}.log",
    priority: PLAN.priority
    conda:
        "../../environment.yml"
    threads: resource("expand_depth", "threads")
    resources:
        mem_mb=resource("expand_depth", "mem_mb"),
        runtime=resource("expand_depth", "runtime"),
        gpu=gpus("expand_depth"),
        gres=gres("expand_depth"),
    params:
        root=run_root,
        cell=job_params("expand_depth"),
        code=job_code("expand_depth"),
        fresh=fresh_argument,
    shell:
        "python -m jumpboard.stages.expand_depth --root {params.root:q} --params {params.cell:q}"
        " --code {params.code} --threads {threads}"
        " --inputs base={input.base:q} checkpoints={input.checkpoints:q} {params.fresh:q}"
        " --outputs jumpboard={output.jumpboard:q} step_gains={output.step_gains:q} expansion={output.expansion:q}"
        " checkpoints={output.checkpoints:q} >> {log:q} 2>&1"


rule expand_width:
    input:
        base="<results>/prepare_dataset/splits/{dataset}.parquet",
        fresh=fresh_rows("expand_width"),
        checkpoints=f"<results>/{paths.cell_checkpoints('train_baseline')}",
    output:
        widening=f"<results>/{paths.cell_table('expand_width', 'widening')}",
    log:
        f"<logs>/expand_width/{paths.CELL}.log",
    priority: PLAN.priority
    conda:
        "../../environment.yml"
    threads: resource("expand_width", "threads")
    resources:
        mem_mb=resource("expand_width", "mem_mb"),
        runtime=resource("expand_width", "runtime"),
        gpu=gpus("expand_width"),
        gres=gres("expand_width"),
    params:
        root=run_root,
        cell=job_params("expand_width"),
        code=job_code("expand_width"),
        fresh=fresh_argument,
    shell:
        "python -m jumpboard.stages.expand_width --root {params.root:q} --params {params.cell:q}"
        " --code {params.code} --threads {threads}"
        " --inputs base={input.base:q} checkpoints={input.checkpoints:q} {params.fresh:q}"
        " --outputs widening={output.widening:q} >> {log:q} 2>&1"


rule expand_chain:
    input:
        base="<results>/prepare_dataset/splits/{dataset}.parquet",
        fresh=fresh_rows("expand_chain"),
        checkpoints=f"<results>/{paths.cell_checkpoints('train_baseline')}",
    output:
        chain=f"<results>/{paths.cell_table('expand_chain', 'chain')}",
        checkpoints=f"<results>/{paths.cell_checkpoints('expand_chain')}",
    log:
        f"<logs>/expand_chain/{paths.CELL}.log",
    priority: PLAN.priority
    conda:
        "../../environment.yml"
    threads: resource("expand_chain", "threads")
    resources:
        mem_mb=resource("expand_chain", "mem_mb"),
        runtime=resource("expand_chain", "runtime"),
        gpu=gpus("expand_chain"),
        gres=gres("expand_chain"),
    params:
        root=run_root,
        cell=job_params("expand_chain"),
        code=job_code("expand_chain"),
        fresh=fresh_argument,
    shell:
        "python -m jumpboard.stages.expand_chain --root {params.root:q} --params {params.cell:q}"
        " --code {params.code} --threads {threads}"
        " --inputs base={input.base:q} checkpoints={input.checkpoints:q} {params.fresh:q}"
        " --outputs chain={output.chain:q} checkpoints={output.checkpoints:q} >> {log:q} 2>&1"
