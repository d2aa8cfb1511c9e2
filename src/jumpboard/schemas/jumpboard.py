"""Table `jumpboard`: the gain of one chosen step of a new block, one row per seed, site, kind, direction and split.

Controls are there for the kind train. The samples of the split fresh are the second half of the fresh ones.
"""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import CELL, DIRECTION, JUMPBOARD_KIND, SEED, SITE, SPLIT

JUMPBOARD = Schema(
    "jumpboard",
    1,
    (
        *CELL,
        SEED,
        SITE,
        JUMPBOARD_KIND,
        DIRECTION,
        SPLIT,
        Column("relative_site", "float64", "1", "site / L"),
        Column("insert_form", "string", "-", "normed: Norm(z + h(z)); bare: z + h(z)"),
        Column(
            "eta", "float64", "units of z per unit of phi", "Frobenius norm of A, chosen on the rows of the direction"
        ),
        Column(
            "slope",
            "float64",
            "nats per unit of eta",
            "first-order fall of the loss along this direction, on the samples that the step was chosen on",
        ),
        Column(
            "slope_sq",
            "float64",
            "(nats per unit of eta)^2",
            "unbiased square of the steepest slope, on the samples of the direction; negative means not resolved",
        ),
        Column(
            "checked_slope",
            "float64",
            "nats per unit of eta",
            "the fall along the direction on the first 256 samples of the step, float64; null for controls",
            nullable=True,
        ),
        Column(
            "measured_slope",
            "float64",
            "nats per unit of eta",
            "finite difference of the loss of the same 256 samples, float64: checked_slope if the theory holds",
            nullable=True,
        ),
        Column("n", "int64", "samples", "samples of the split that the gain is measured on"),
        Column("gain", "float64", "nats", "Delta_R: mean loss of the old net minus that of the jumpboard"),
        Column("gain_se", "float64", "nats", "standard error of the gain, from paired differences"),
        Column("clipped_gain", "float64", "nats", "the gain of losses clipped at `bound`"),
        Column("clipped_gain_se", "float64", "nats", "standard error of clipped_gain, from paired differences"),
        Column("steps", "int64", "1", "G: steps examined on these samples; 1 where the step was chosen on others"),
        Column(
            "bernstein_low",
            "float64",
            "nats",
            "empirical Bernstein lower limit of clipped_gain, delta 0.05, range 2 B, G steps",
        ),
        Column("bound", "float64", "nats", "B: ln(classes) + 2, at which losses are clipped"),
    ),
)
