"""Table `covariance`: how near to diagonal the covariance of activation gradients is, from pooled rows of a site.

Each statistic of pairs stands beside its mean over permutations of the samples within each coordinate (`null_...`),
which is what a covariance that is truly diagonal would show at this n and N.
"""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import CELL, CHECKPOINT, SEED, SITE, SPLIT

PAIRS = (
    ("rho_off", "1", "share of energy off the diagonal, unbiased", False),
    ("rho_off_plugin", "1", "the same of the empirical law, biased", False),
    ("mean_correlation", "1", "mean |correlation| over pairs of coordinates", True),
    ("max_correlation", "1", "largest |correlation|", True),
    ("max_covariance", "nats^2 per unit^2 of z", "largest |covariance|", True),
    ("lambda_max_ratio", "1", "largest eigenvalue of the covariance over the mean variance", True),
)

COVARIANCE = Schema(
    "covariance",
    1,
    (
        *CELL,
        SEED,
        CHECKPOINT,
        SITE,
        SPLIT,
        Column("n", "int64", "samples", "pooled rows"),
        Column("units", "int64", "units", "dimension N of the stream at the site"),
        Column("constant", "int64", "units", "coordinates that never vary, left out of correlations"),
        Column("mean_variance", "float64", "nats^2 per unit^2 of z", "mean variance of a coordinate"),
        Column("participation", "float64", "1", "participation ratio tr(Sigma)^2 / tr(Sigma^2)", nullable=True),
        Column("diagonal_by_draft", "bool", "-", "max_covariance < 1e-5, the group's draft criterion"),
        *(Column(name, "float64", unit, text, nullable=null) for name, unit, text, null in PAIRS),
        *(Column(f"null_{name}", "float64", unit, f"{text}: null", nullable=null) for name, unit, text, null in PAIRS),
    ),
)
