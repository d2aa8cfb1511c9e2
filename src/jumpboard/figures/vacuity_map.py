"""Figure `vacuity_map`: for how many parameters and training samples the paper's uniform bound says anything.

    eps_M / B        1 or more says nothing

for nets with the layers, caps and Lipschitz constant of the certified net whose constant is the largest. Paper `depth`,
certificates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.figures.measured import nothing_measured, rows_of_net
from jumpboard.figures.panels import Handle, headline, legend_below
from jumpboard.figures.style import COLUMN, new_figure, styled
from jumpboard.schemas.keys import ARCH, DATASET
from jumpboard.theory.uniform import Complexity

Row = Mapping[str, Any]

PARAMETERS = tuple(round(value) for value in np.geomspace(10, 1e7, 37))
SAMPLES = tuple(round(value) for value in np.geomspace(1e3, 1e10, 43))
MAP, NET = "map", "net"
LINES = {0.1: "--", 1.0: "-"}

SCHEMA = Schema(
    "vacuity_map",
    1,
    (
        DATASET,
        ARCH,
        Column("kind", "string", "-", "map: nets of like constants; net: nets that are certified", key=True),
        Column("parameters", "int64", "1", "d: number of parameters", key=True),
        Column("train_samples", "int64", "samples", "M: number of training samples", key=True),
        Column("loss", "string", "-", "bounded loss that the map is for"),
        Column("vacuity", "float64", "1", "eps_M / B"),
    ),
)
CAPTION = (
    "Two-sided uniform deviation eps_M of the paper's bound over the largest value B of the loss, for nets of d "
    "parameters and M training samples with the layers, caps and Lipschitz constant of the certified nets (the largest "
    "of them). Lines: 1, at and below which the bound says nothing, and 0.1. Circles: nets that are certified."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `routes` -> rows of `SCHEMA`; none for nets that no route covers."""
    rows_of_net("routes", rows, dataset, arch)  # refuses a table of other nets
    named = [row for row in rows if (row["dataset"], row["arch"]) == (dataset, arch) and row["eps_m"] is not None]
    if not named:
        return []
    loss = min(row["loss"] for row in named)
    own = [row for row in named if row["loss"] == loss]
    most = max(own, key=lambda row: float(row["lipschitz"]))
    constants = (most["layers"], most["frobenius_cap"], most["lipschitz"], most["loss_lipschitz"], most["bound"])
    form = Complexity(1, *constants)
    delta = most["delta"] * most["class_share"]
    key = {"dataset": dataset, "arch": arch, "loss": loss}
    ratios = {(d, m): replace(form, parameters=d).deviation(m, delta) / form.bound for d in PARAMETERS for m in SAMPLES}
    nets = {(row["parameters"], row["train_samples"]): row["vacuity"] for row in own}
    return [
        {**key, "kind": kind, "parameters": d, "train_samples": m, "vacuity": float(ratio)}
        for kind, found in ((MAP, ratios), (NET, nets))
        for (d, m), ratio in sorted(found.items())
    ]


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_measured("Vacuity of the uniform bound", "it covers no net here")
    grid, nets = ([row for row in rows if row["kind"] == kind] for kind in (MAP, NET))
    d, m = (sorted({row[name] for row in grid}) for name in ("parameters", "train_samples"))
    ordered = sorted(grid, key=lambda row: (row["train_samples"], row["parameters"]))
    ratio = np.array([row["vacuity"] for row in ordered]).reshape(len(m), len(d))
    with styled():
        figure = new_figure(COLUMN, 3.0)
        axes = figure.subplots()
        shown = axes.pcolormesh(d, m, ratio, norm=LogNorm(0.01, 100), cmap="RdBu_r", shading="gouraud", rasterized=True)
        axes.contour(d, m, ratio, levels=list(LINES), colors="black", linewidths=1.0, linestyles=list(LINES.values()))
        axes.plot(
            [row["parameters"] for row in nets], [row["train_samples"] for row in nets], "o", color="black", mfc="white"
        )
        axes.set(xscale="log", yscale="log", xlabel="parameters d", ylabel="training samples M")
        bar = figure.colorbar(shown, ax=axes, extend="both")
        bar.set_label("deviation over largest loss, ε / B")
        headline(figure, _headline(nets), rows[0])
        legend_below(figure, _legend())
    return figure


def _legend() -> list[Handle]:
    circle = Line2D([], [], color="black", marker="o", mfc="white", ls="", label="certified nets")
    return [
        circle,
        *(Line2D([], [], color="black", lw=1.0, ls=line, label=f"ε / B = {level:g}") for level, line in LINES.items()),
    ]


def _headline(nets: Sequence[Row]) -> str:
    best = min(nets, key=lambda row: float(row["vacuity"]))
    told = f"{best['parameters']} parameters and {best['train_samples']:,} samples"
    return f"Uniform bound: at best ε / B = {best['vacuity']:.2g}, with {told}"
