"""Table `ladder`: what each certificate says of the gain of an expansion, from the paper's bounds to the tightest, one
row per seed, site, arm, rung and loss.

    route_a, route_b    as in table `routes`: gain Delta_R/2 + Delta_ERM, or Delta_R^test + Delta_ERM
    step_grid           jumpboard (arm jumpboard): all G steps of the grid at once, on test samples
    bernstein           the fixed pair of old and selected net, on test samples
    hoeffding           the same without a variance

limit = gain - slack lies above the true gain with at most the stated failure probability. The slack is the smallest
gain that the samples certify; `samples_needed` would certify the gain found here (for route_b as many training as test
samples). Numbers of a route that is not applicable are null.
"""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import ARM, CELL, JUMPBOARD_KIND, LOSS, SEED, SITE

LADDER = Schema(
    "ladder",
    1,
    (
        *CELL,
        SEED,
        SITE,
        ARM,
        Column("rung", "string", "-", "route_a, route_b, step_grid, bernstein or hoeffding", key=True),
        LOSS,
        JUMPBOARD_KIND,
        Column("reason", "string", "-", "why the rung is not applicable, else empty"),
        Column("samples_used", "int64", "samples", "samples that the slack falls with: M for the routes, else K"),
        Column("gain", "float64", "loss", "gain that the slack is taken off", nullable=True),
        Column("slack", "float64", "loss", "smallest gain that is certified", nullable=True),
        Column("limit", "float64", "loss", "gain - slack", nullable=True),
        Column("failure", "float64", "1", "stated failure probability, at most 1", nullable=True),
        Column(
            "samples_needed", "int64", "samples", "for the gain found; null where that is not above 0", nullable=True
        ),
    ),
)
