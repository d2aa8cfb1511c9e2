"""Figure `gain_over_training_on_width`: is new width worth more than the same training without it?

    gain of the arm - gain of the old net trained on        equal steps; above 0 the arm is better

Paper `depth`, widening.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from jumpboard.figures.arm_differences import difference_schema, differences, draw_differences
from jumpboard.figures.expanded import nothing_expanded

Row = Mapping[str, Any]

SCHEMA = difference_schema("gain_over_training_on_width")
CAPTION = (
    "Test loss of the old net trained on minus that of the widened net trained as long, by depth, one panel per width "
    "of the old net, at the largest number of training samples. Above the black line new width was worth more than "
    "training on. From scratch: a net of the new width trained for the steps of both together; arrows to the "
    "edge: beyond it, with the value. Points: mean over seeds; bars: two-sided 90 % t intervals; arms stand a little "
    "apart. Title: nets whose whole interval lies on one side, of those that were widened."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `widening` -> rows of `SCHEMA`."""
    return differences("widening", rows, dataset, arch)


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_expanded("Gain of new width over training on")
    return draw_differences(rows, "widened", "New width")
