# Contract: collected metrics of a (data set, arch), and where it has chains their collected table, and the data set's card
#           -> <results>/fit_power_law/{fits,fitted,betas,fitted_chain}/<dataset>/<arch>.parquet.


rule fit_power_law:
    input:
        metrics="<results>/collect/metrics/{dataset}/{arch}.parquet",
        chain=fitted_chains,
        card="<results>/describe_dataset/card/{dataset}.parquet",
    output:
        fits="<results>/fit_power_law/fits/{dataset}/{arch}.parquet",
        fitted="<results>/fit_power_law/fitted/{dataset}/{arch}.parquet",
        betas="<results>/fit_power_law/betas/{dataset}/{arch}.parquet",
        fitted_chain="<results>/fit_power_law/fitted_chain/{dataset}/{arch}.parquet",
    log:
        "<logs>/fit_power_law/{dataset}/{arch}.log",
    priority: 100000
    conda:
        "../../environment.yml"
    threads: resource("fit_power_law", "threads")
    resources:
        mem_mb=resource("fit_power_law", "mem_mb"),
        runtime=resource("fit_power_law", "runtime"),
    params:
        root=run_root,
        net=job_params("fit_power_law"),
        code=job_code("fit_power_law"),
        chain=lambda wildcards, input: [f"chain={input.chain}"] if input.chain else [],
    shell:
        "python -m jumpboard.stages.fit_power_law --root {params.root:q} --params {params.net:q}"
        " --code {params.code} --threads {threads}"
        " --inputs metrics={input.metrics:q} card={input.card:q} {params.chain:q}"
        " --outputs fits={output.fits:q} fitted={output.fitted:q} betas={output.betas:q}"
        " fitted_chain={output.fitted_chain:q} >> {log:q} 2>&1"
