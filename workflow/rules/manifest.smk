# Contract: every file of the run -> <results>/manifest.json and <results>/records/manifest.json.


rule write_manifest:
    input:
        run_files(),
        config="<results>/config.json",
    output:
        manifest="<results>/manifest.json",
        records="<results>/records/manifest.json",
    log:
        "<logs>/write_manifest.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        root=run_root,
        nothing=job_params("write_manifest"),
        code=job_code("write_manifest"),
    shell:
        "python -m jumpboard.stages.write_manifest --root {params.root:q} --params {params.nothing:q}"
        " --code {params.code} --inputs config={input.config:q}"
        " --outputs manifest={output.manifest:q} records={output.records:q} >> {log:q} 2>&1"
