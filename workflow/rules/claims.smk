# Contract: config, inventory, ledger -> <results>/config.json; collected tables -> <results>/evaluate_claims/claims.parquet.


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
        metrics=[f"<results>/collect/metrics/{'/'.join(one)}.parquet" for one in PLAN.experiments("train_baseline")],
        signal=[f"<results>/collect/signal/{'/'.join(one)}.parquet" for one in PLAN.experiments("measure_gradients")],
        moments=[f"<results>/collect/moments/{'/'.join(one)}.parquet" for one in PLAN.experiments("measure_gradients")],
        covariance=[
            f"<results>/collect/covariance/{'/'.join(one)}.parquet" for one in PLAN.experiments("measure_gradients")
        ],
        jumpboard=[f"<results>/collect/jumpboard/{'/'.join(one)}.parquet" for one in PLAN.experiments("expand_depth")],
        step_gains=[f"<results>/collect/step_gains/{'/'.join(one)}.parquet" for one in PLAN.experiments("expand_depth")],
        expansion=[f"<results>/collect/expansion/{'/'.join(one)}.parquet" for one in PLAN.experiments("expand_depth")],
        widening=[f"<results>/collect/widening/{'/'.join(one)}.parquet" for one in PLAN.experiments("expand_width")],
        routes=[f"<results>/collect/routes/{'/'.join(one)}.parquet" for one in PLAN.experiments("certify")],
        chain=[f"<results>/collect/chain/{'/'.join(one)}.parquet" for one in PLAN.experiments("expand_chain")],
        fits=[f"<results>/fit_power_law/fits/{'/'.join(one)}.parquet" for one in PLAN.fitted()],
        betas=[f"<results>/fit_power_law/betas/{'/'.join(one)}.parquet" for one in PLAN.fitted()],
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
