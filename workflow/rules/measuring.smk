# Contract: a cell's checkpoints and its data -> <results>/measure_gradients/{signal,moments,covariance,correlations}/...;
#           collected per data set and arch by the rule `collect`.


rule measure_gradients:
    input:
        base="<results>/prepare_dataset/splits/{dataset}.parquet",
        fresh=fresh_rows("measure_gradients"),
        checkpoints=f"<results>/{paths.cell_checkpoints('train_baseline')}",
    output:
        signal=f"<results>/{paths.cell_table('measure_gradients', 'signal')}",
        moments=f"<results>/{paths.cell_table('measure_gradients', 'moments')}",
        covariance=f"<results>/{paths.cell_table('measure_gradients', 'covariance')}",
        correlations=f"<results>/{paths.cell_table('measure_gradients', 'correlations')}",
    log:
        f"<logs>/measure_gradients/{paths.CELL}.log",
    priority: PLAN.priority
    conda:
        "../../environment.yml"
    threads: resource("measure_gradients", "threads")
    resources:
        mem_mb=resource("measure_gradients", "mem_mb"),
        runtime=resource("measure_gradients", "runtime"),
        gpu=gpus("measure_gradients"),
        gres=gres("measure_gradients"),
    params:
        root=run_root,
        cell=job_params("measure_gradients"),
        code=job_code("measure_gradients"),
        fresh=fresh_argument,
    shell:
        "python -m jumpboard.stages.measure_gradients --root {params.root:q} --params {params.cell:q}"
        " --code {params.code} --threads {threads}"
        " --inputs base={input.base:q} checkpoints={input.checkpoints:q} {params.fresh:q}"
        " --outputs signal={output.signal:q} moments={output.moments:q} covariance={output.covariance:q}"
        " correlations={output.correlations:q} >> {log:q} 2>&1"
