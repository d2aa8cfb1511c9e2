"""Table `chain`: one reference net expanded again and again, one row per seed and number k of inserted blocks.

Each block is inserted at the chain's site, begun at its jumpboard (at 0 where no step is better on training samples)
and trained alone. `signal_feature_sq` is that which a next block there would see, on fresh samples (test samples where
none are asked for), n grown until it is 5 standard errors above 0 or the samples are used up. Its random features are
those of the table `signal` at that seed and site, the same at every k.
"""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.expanded import losses
from jumpboard.schemas.keys import CELL, SEED
from jumpboard.schemas.limits import estimated

CHAIN = Schema(
    "chain",
    1,
    (
        *CELL,
        SEED,
        Column("k", "int64", "blocks", "number of blocks inserted so far", key=True),
        Column("site", "int64", "blocks", "site that all blocks are inserted at"),
        Column("insert_form", "string", "-", "normed: Norm(z + h(z)); bare: z + h(z)"),
        Column("status", "string", "-", "trained, or diverged where the loss became non-finite"),
        Column(
            "branch", "string", "-", "trained, jumpboard where training ended worse on training samples, none at k = 0"
        ),
        Column("steps", "int64", "steps", "optimiser steps since the reference"),
        Column("parameters", "int64", "1", "number of parameters of the net"),
        *losses("net", "the net"),
        *estimated("signal_feature_sq", "nats^2 per unit^2 of z", "|E[zeta_+ phi(z)']|_F^2 at the site"),
        Column("signal_n", "int64", "samples", "samples that the signal is measured on"),
        Column("signal_split", "string", "-", "fresh, or test where no fresh samples are asked for"),
        Column("signal_z", "float64", "1", "the signal in standard errors"),
    ),
)
