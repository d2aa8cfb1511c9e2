# Contract: a finished run and the page's template -> <results>/report.zip, one page with figures and plotted tables. Only
#           the target `report` asks for it, no manifest lists it, and no other rule reads it.


rule report:
    input:
        manifest="<results>/manifest.json",
        records="<results>/records/manifest.json",
        page="workflow/report/page.html",
    output:
        report="<results>/report.zip",
    log:
        "<logs>/report.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        root=run_root,
        run=job_params("report"),
        code=job_code("report"),
    shell:
        "python -m jumpboard.stages.report --root {params.root:q} --params {params.run:q} --code {params.code}"
        " --inputs page={input.page:q} --outputs report={output.report:q} >> {log:q} 2>&1"
