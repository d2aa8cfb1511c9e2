# Contract: splits, and the file of weights where the net names one -> per cell
#           <results>/train_baseline/{curves,metrics}/... and <results>/checkpoints/train_baseline/...;
#           collected per data set and arch into <results>/collect/{curves,metrics}/<dataset>/<arch>.parquet.


rule train_baseline:
    input:
        splits="<results>/prepare_dataset/splits/{dataset}.parquet",
        weights=weights_file,
    output:
        curves=f"<results>/{paths.cell_table('train_baseline', 'curves')}",
        metrics=f"<results>/{paths.cell_table('train_baseline', 'metrics')}",
        checkpoints=f"<results>/{paths.cell_checkpoints('train_baseline')}",
    log:
        f"<logs>/train_baseline/{paths.CELL}.log",
    priority: PLAN.priority
    conda:
        "../../environment.yml"
    threads: resource("train_baseline", "threads")
    resources:
        mem_mb=resource("train_baseline", "mem_mb"),
        runtime=resource("train_baseline", "runtime"),
        gpu=gpus("train_baseline"),
        gres=gres("train_baseline"),
    params:
        root=run_root,
        cell=job_params("train_baseline"),
        code=job_code("train_baseline"),
        weights=lambda wildcards, input: [f"weights={input.weights}"] if input.weights else [],
    shell:
        "python -m jumpboard.stages.train_baseline --root {params.root:q} --params {params.cell:q}"
        " --code {params.code} --threads {threads} --inputs splits={input.splits:q} {params.weights:q}"
        " --outputs curves={output.curves:q} metrics={output.metrics:q} checkpoints={output.checkpoints:q}"
        " >> {log:q} 2>&1"


rule collect:
    input:
        config="<results>/config.json",
        cells=collected_cells,
    output:
        table="<results>/collect/{table}/{dataset}/{arch}.parquet",
    log:
        "<logs>/collect/{table}/{dataset}/{arch}.log",
    priority: 100000
    localrule: True
    conda:
        "../../environment.yml"
    params:
        root=run_root,
        table=job_params("collect"),
        code=job_code("collect"),
    shell:
        "python -m jumpboard.stages.collect --root {params.root:q} --params {params.table:q}"
        " --code {params.code} --threads {threads} --inputs config={input.config:q}"
        " --outputs table={output.table:q} >> {log:q} 2>&1"
