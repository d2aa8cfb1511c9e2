# Contract: config, inventory, ledger -> <results>/config.json; collected and fitted tables -> <results>/evaluate_claims/claims.parquet.


rule resolve_config:
    input:
        datasets=config["datasets"],
        claims=config["claims"],
    output:
        config="<results>/config.json",
    log:
        "<logs>/resolve_config.log",
    priority: 100000
    localrule: True
    conda:
        "../../environment.yml"
    params:
        root=run_root,
        config=job_params("resolve_config"),
        code=job_code("resolve_config"),
    shell:
        "python -m jumpboard.stages.resolve_config --root {params.root:q} --params {params.config:q}"
        " --code {params.code} --inputs datasets={input.datasets:q} claims={input.claims:q}"
        " --outputs config={output.config:q} >> {log:q} 2>&1"


rule evaluate_claims:
    input:
        config="<results>/config.json",
        metrics=tables_of("metrics"),
        signal=tables_of("signal"),
        moments=tables_of("moments"),
        covariance=tables_of("covariance"),
        jumpboard=tables_of("jumpboard"),
        step_gains=tables_of("step_gains"),
        expansion=tables_of("expansion"),
        widening=tables_of("widening"),
        routes=tables_of("routes"),
        chain=tables_of("chain"),
        fits=tables_of("fits"),
        betas=tables_of("betas"),
    output:
        claims="<results>/evaluate_claims/claims.parquet",
    log:
        "<logs>/evaluate_claims.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        root=run_root,
        rules=job_params("evaluate_claims"),
        code=job_code("evaluate_claims"),
        tables=lambda wildcards, input: [
            f"{table}_{i}={path}" for table in input.keys() if table != "config" for i, path in enumerate(input[table])
        ],
    shell:
        "python -m jumpboard.stages.evaluate_claims --root {params.root:q} --params {params.rules:q}"
        " --code {params.code} --threads {threads} --inputs config={input.config:q} {params.tables:q}"
        " --outputs claims={output.claims:q} >> {log:q} 2>&1"
