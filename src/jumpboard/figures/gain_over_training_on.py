"""Figure `gain_over_training_on`: is a new block worth more than the same training without it?

    gain of the arm (mean over sites) - gain of the old net trained on        equal steps; above 0 the arm is better

Paper `depth`, expansion training.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from jumpboard.figures.arm_differences import difference_schema, differences, draw_differences
from jumpboard.figures.expanded import nothing_expanded

Row = Mapping[str, Any]

SCHEMA = difference_schema("gain_over_training_on")
CAPTION = (
    "Test loss of the old net trained on minus that of nets with a new block trained as long, by depth, one panel per "
    "width, at the largest number of training samples. Above the black line the new block was worth more than "
    "training on. Each run is averaged over its sites; selected models, jumpboards of training samples. From scratch: "
    "a net of the new depth trained for the steps of both together; arrows to the edge: beyond it, with the "
    "value. Points: mean over seeds; bars: two-sided 90 % t intervals; arms stand a little apart. Title: nets whose "
    "whole interval lies on one side, of those that began at the jumpboard and trained all parameters."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `expansion` -> rows of `SCHEMA`."""
    return differences("expansion", rows, dataset, arch)


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_expanded("Gain of new blocks over training on")
    return draw_differences(rows, "jumpboard_all", "A new block")
