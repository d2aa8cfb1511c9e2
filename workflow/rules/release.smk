# Contract: a finished run -> <results>/released, <figures>/released, the generated blocks of README.md and of the
#           config's head. Only the target `release` asks for it, and no other rule reads what it writes.


rule release:
    input:
        manifest="<results>/manifest.json",
        records="<results>/records/manifest.json",
    log:
        "<logs>/release.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        root=run_root,
        run=job_params("release"),
        code=job_code("release"),
    shell:
        "python -m jumpboard.stages.release --root {params.root:q} --params {params.run:q} --code {params.code}"
        " --outputs readme=README.md config=config/config.yaml >> {log:q} 2>&1"
