"""Table `moments`: the moments of activation gradients at every site, one row per seed, checkpoint, split and site."""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import CELL, CHECKPOINT, SEED, SITE, SPLIT
from jumpboard.schemas.limits import estimated

SQUARED, FOURTH = "nats^2 per unit^2 of z", "nats^4 per unit^4 of z"

MOMENTS = Schema(
    "moments",
    1,
    (
        *CELL,
        SEED,
        CHECKPOINT,
        SITE,
        SPLIT,
        Column("n", "int64", "samples", "samples measured"),
        Column("units", "int64", "units", "dimension N of the stream at the site"),
        *estimated("S", SQUARED, "|mu|^2"),
        *estimated("V", FOURTH, "mu' Sigma mu"),
        *estimated("T", FOURTH, "tr(Sigma^2)"),
        *estimated("R", SQUARED, "tr(Sigma)"),
        *estimated("R2", FOURTH, "tr(Sigma)^2"),
        *estimated("diag", FOURTH, "|diag Sigma|^2, the energy on the diagonal"),
        *estimated("rho_off", "1", "(T - diag)/T, the share of energy off the diagonal"),
    ),
)
