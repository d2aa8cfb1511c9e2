"""Figures by name: figure -> the module that holds it, the table it is drawn from, its paper. Imports none of them.

A module holds `SCHEMA` and `CAPTION`, and two pure functions: `plotted(rows, dataset, arch)` turns rows of the source
table into rows of `SCHEMA`, `draw(rows)` turns these into a picture. Of `FIGURES` there is a picture for each net that
has the table; of `RUN_FIGURES` one for the whole run, and `plotted` takes rows alone.
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from jumpboard.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jumpboard.artefacts.tables import Schema


class Entry(NamedTuple):
    """A figure's module, its source table and the short name of the paper it belongs to."""

    module: str
    table: str
    paper: str = "depth"


FIGURES = {
    "joint_scaling": Entry("jumpboard.figures.joint_scaling", "metrics"),
    "depth_width_map": Entry("jumpboard.figures.depth_width_map", "metrics"),
    "generalisation_gap": Entry("jumpboard.figures.generalisation_gap", "metrics"),
    "learning_curves": Entry("jumpboard.figures.learning_curves", "curves"),
    "signal_decay": Entry("jumpboard.figures.signal_decay", "signal"),
    "off_diagonal_energy": Entry("jumpboard.figures.off_diagonal_energy", "covariance"),
    "correlation_maps": Entry("jumpboard.figures.correlation_maps", "correlations"),
    "deepest_model": Entry("jumpboard.figures.deepest_model", "signal"),
    "first_order_gain": Entry("jumpboard.figures.first_order_gain", "step_gains"),
    "gain_by_site": Entry("jumpboard.figures.gain_by_site", "jumpboard"),
    "gain_decomposition": Entry("jumpboard.figures.gain_decomposition", "expansion"),
    "gain_over_training_on": Entry("jumpboard.figures.gain_over_training_on", "expansion"),
    "gain_over_training_on_width": Entry("jumpboard.figures.gain_over_training_on_width", "widening"),
    "chain": Entry("jumpboard.figures.chain", "chain"),
    "certificate_ladder": Entry("jumpboard.figures.certificate_ladder", "ladder"),
    "route_terms": Entry("jumpboard.figures.route_terms", "routes"),
    "vacuity_map": Entry("jumpboard.figures.vacuity_map", "routes"),
    "power_law_fits": Entry("jumpboard.figures.power_law_fits", "fitted"),
    "extrapolation": Entry("jumpboard.figures.extrapolation", "fitted"),
    "rival_laws": Entry("jumpboard.figures.rival_laws", "fits"),
    "two_betas": Entry("jumpboard.figures.two_betas", "fitted_chain"),
}
RUN_FIGURES = {"claims_overview": Entry("jumpboard.figures.claims_overview", "claims", "all")}


class FigureModule(Protocol):
    """What a figure's module offers."""

    SCHEMA: "Schema"
    CAPTION: str

    @staticmethod
    def plotted(rows: Sequence[Mapping[str, Any]], **net: str) -> list[dict[str, Any]]: ...

    @staticmethod
    def draw(rows: Sequence[Mapping[str, Any]]) -> "Figure": ...


def figure_entry(name: str) -> Entry:
    """What is known of a figure. Raises InputError for an unknown name."""
    every = FIGURES | RUN_FIGURES
    if name not in every:
        raise InputError(f"figure '{name}' is not known; accepted: {', '.join(every)}")
    return every[name]


def figure_module(name: str) -> FigureModule:
    """The module of a figure. Raises InputError for an unknown name."""
    return cast(FigureModule, importlib.import_module(figure_entry(name).module))
