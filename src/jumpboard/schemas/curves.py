"""Table `curves`: the course of training, one row per seed, split and evaluated step."""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import CELL, SEED, SPLIT

CURVES = Schema(
    "curves",
    1,
    (
        *CELL,
        SEED,
        SPLIT,
        Column("step", "int64", "steps", "optimiser steps done", key=True),
        Column("loss", "float64", "nats", "train: smoothed batch loss before the step; validation: mean of the split"),
        Column("accuracy", "float64", "1", "share classified correctly, over the same samples as the loss"),
    ),
)
