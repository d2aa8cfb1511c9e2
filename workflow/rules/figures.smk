# Contract: collected or fitted table of a (data set, arch) -> <figures>/<figure>/<dataset>/<arch>.{svg,png,parquet}, the
#           last the plotted table; table of the run -> <figures>/<figure>.{svg,png,parquet}. One rule per figure of the
#           library's registry, all through the stage draw_figure.
from jumpboard.figures.registry import FIGURES, RUN_FIGURES

DRAWN = {
    figure: (table_place(entry.table).replace("{table}", entry.table), place.replace("{figure}", figure))
    for place, figures in ((paths.FIGURE, FIGURES), ("{figure}", RUN_FIGURES))
    for figure, entry in figures.items()
}

for figure, (table, place) in DRAWN.items():

    rule:
        name:
            f"draw_{figure}"
        input:
            table=f"<results>/{table}",
        output:
            svg=f"<figures>/{place}.svg",
            png=f"<figures>/{place}.png",
            table=f"<figures>/{place}.parquet",
        log:
            f"<logs>/draw_figure/{place}.log",
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
