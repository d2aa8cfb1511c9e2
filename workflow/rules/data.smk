# Contract: the inventory's entries, and copies of data sets that lie outside the run or are downloaded
#           -> <results>/prepare_dataset/splits/<dataset>.parquet, and from these
#           <results>/describe_dataset/card/<dataset>.parquet and where asked for <results>/prepare_fresh/rows/<dataset>.parquet.
#           `source`, the place of a copy, reruns the preparation but is in no digest.


rule prepare_dataset:
    input:
        unpack(normalised_by),
    output:
        splits="<results>/prepare_dataset/splits/{dataset}.parquet",
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
        source=lambda wildcards: json.dumps(PLAN.source(wildcards), sort_keys=True),
    shell:
        "python -m jumpboard.stages.prepare_dataset --root {params.root:q} --params {params.spec:q}"
        " --code {params.code} --threads {threads} --inputs {params.base:q} --source {params.source:q}"
        " --outputs splits={output.splits:q} >> {log:q} 2>&1"


rule describe_dataset:
    input:
        splits="<results>/prepare_dataset/splits/{dataset}.parquet",
    output:
        card="<results>/describe_dataset/card/{dataset}.parquet",
    log:
        "<logs>/describe_dataset/{dataset}.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: resource("prepare_dataset", "threads")
    resources:
        mem_mb=resource("prepare_dataset", "mem_mb"),
        runtime=resource("prepare_dataset", "runtime"),
    params:
        root=run_root,
        words=job_params("describe_dataset"),
        code=job_code("describe_dataset"),
    shell:
        "python -m jumpboard.stages.describe_dataset --root {params.root:q} --params {params.words:q}"
        " --code {params.code} --threads {threads} --inputs splits={input.splits:q}"
        " --outputs card={output.card:q} >> {log:q} 2>&1"


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
