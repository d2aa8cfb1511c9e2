# Contract: the inventory's entries -> <results>/prepare_dataset/{splits,card}/<dataset>.parquet,
#           and where asked for <results>/prepare_fresh/rows/<dataset>.parquet.


rule prepare_dataset:
    input:
        unpack(normalised_by),
    output:
        splits="<results>/prepare_dataset/splits/{dataset}.parquet",
        card="<results>/prepare_dataset/card/{dataset}.parquet",
    log:
        "<logs>/prepare_dataset/{dataset}.log",
    priority: 100000
    localrule: True
    conda:
        "../../environment.yml"
    threads: resource("prepare_dataset", "threads")
    resources:
        mem_mb=resource("prepare_dataset", "mem_mb"),
        runtime=resource("prepare_dataset", "runtime"),
    params:
        root=run_root,
        spec=job_params("prepare_dataset"),
        code=job_code("prepare_dataset"),
        base=lambda wildcards, input: [f"base={input.base}"] if input.get("base") else [],
    shell:
        "python -m jumpboard.stages.prepare_dataset --root {params.root:q} --params {params.spec:q}"
        " --code {params.code} --threads {threads} --inputs {params.base:q}"
        " --outputs splits={output.splits:q} card={output.card:q} >> {log:q} 2>&1"


rule prepare_fresh:
    input:
        base="<results>/prepare_dataset/splits/{dataset}.parquet",
    output:
        rows="<results>/prepare_fresh/rows/{dataset}.parquet",
    log:
        "<logs>/prepare_fresh/{dataset}.log",
    conda:
        "../../environment.yml"
    threads: resource("prepare_dataset", "threads")
    resources:
        mem_mb=resource("prepare_dataset", "mem_mb"),
        runtime=resource("prepare_dataset", "runtime"),
    params:
        root=run_root,
        spec=job_params("prepare_fresh"),
        code=job_code("prepare_fresh"),
    shell:
        "python -m jumpboard.stages.prepare_fresh --root {params.root:q} --params {params.spec:q}"
        " --code {params.code} --threads {threads} --inputs base={input.base:q}"
        " --outputs rows={output.rows:q} >> {log:q} 2>&1"
