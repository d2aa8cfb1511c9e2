"""Table `correlations`: upper triangles of correlation matrices for the heat maps, with one permuted null."""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import CELL, CHECKPOINT, SEED, SITE, SPLIT

CORRELATIONS = Schema(
    "correlations",
    1,
    (
        *CELL,
        SEED,
        CHECKPOINT,
        SITE,
        SPLIT,
        Column("i", "int64", "-", "first coordinate", key=True),
        Column("j", "int64", "-", "second coordinate, j > i", key=True),
        Column("correlation", "float64", "1", "correlation of zeta_i and zeta_j; 0 where one is constant"),
        Column("null_correlation", "float64", "1", "the same after permuting the samples of each coordinate"),
    ),
)
