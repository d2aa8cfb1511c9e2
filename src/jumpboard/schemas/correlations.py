"""Table `correlations`: upper triangles with the diagonal of the covariance and correlation matrices of the heat maps,
and one permuted null."""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import CELL, CHECKPOINT, SEED, SITE, SPLIT

CORRELATIONS = Schema(
    "correlations",
    2,
    (
        *CELL,
        SEED,
        CHECKPOINT,
        SITE,
        SPLIT,
        Column("i", "int64", "-", "first coordinate", key=True),
        Column("j", "int64", "-", "second coordinate, j >= i", key=True),
        Column("covariance", "float64", "nats^2 per unit^2 of z", "covariance of zeta_i and zeta_j, divisor n - 1"),
        Column("correlation", "float64", "1", "correlation of zeta_i and zeta_j; 0 where one is constant"),
        Column("null_correlation", "float64", "1", "the same after permuting the samples of each coordinate"),
    ),
)
