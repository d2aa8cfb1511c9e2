"""Table `step_gains`: predicted and realised gain of each step along the steepest direction, one row per seed, site,
kind, step and split."""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import CELL, JUMPBOARD_KIND, SEED, SITE, SPLIT

STEP_GAINS = Schema(
    "step_gains",
    1,
    (
        *CELL,
        SEED,
        SITE,
        JUMPBOARD_KIND,
        Column("step", "int64", "1", "index of the step in the grid, smallest first", key=True),
        SPLIT,
        Column("relative_site", "float64", "1", "site / L"),
        Column("eta", "float64", "units of z per unit of phi", "Frobenius norm of A"),
        Column("relative_eta", "float64", "1", "eta in units of RMS |z| / RMS |phi|"),
        Column(
            "predicted_gain",
            "float64",
            "nats",
            "eta times the slope on this split's rows along the direction, to first order",
        ),
        Column("gain", "float64", "nats", "mean loss of the old net minus that with the step"),
        Column("gain_se", "float64", "nats", "standard error of the gain, from paired differences"),
        Column("n", "int64", "samples", "samples of the split that the gain is measured on"),
    ),
)
