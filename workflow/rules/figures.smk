# Contract: collected or fitted table of a (data set, arch) -> <figures>/<figure>/<dataset>/<arch>.{svg,png,parquet}, the last the
#           plotted table. One rule per figure of the library's registry, all through the stage draw_figure.
from jumpboard.configuration.plan import FITTED
from jumpboard.figures.registry import FIGURES

for figure, needs in FIGURES.items():

    rule:
        name:
            f"draw_{figure}"
        input:
            table=f"<results>/{'fit_power_law' if needs.table in FITTED else 'collect'}/{needs.table}/{{dataset}}/{{arch}}.parquet",
        output:
            svg=f"<figures>/{figure}/{{dataset}}/{{arch}}.svg",
            png=f"<figures>/{figure}/{{dataset}}/{{arch}}.png",
            table=f"<figures>/{figure}/{{dataset}}/{{arch}}.parquet",
        log:
            f"<logs>/draw_figure/{figure}/{{dataset}}/{{arch}}.log",
        priority: 100000
        localrule: True
        conda:
            "../../environment.yml"
        params:
            root=run_root,
            figure=job_params("draw_figure", figure=figure),
            code=job_code("draw_figure", figure=figure),
        shell:
            "python -m jumpboard.stages.draw_figure --root {params.root:q} --params {params.figure:q}"
            " --code {params.code} --threads {threads} --inputs table={input.table:q}"
            " --outputs svg={output.svg:q} png={output.png:q} table={output.table:q} >> {log:q} 2>&1"
