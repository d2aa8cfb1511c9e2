"""Table `signal`: first-order signals of a trained net at every site, one row per seed, checkpoint, split and site."""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import CELL, CHECKPOINT, SEED, SITE, SPLIT
from jumpboard.schemas.limits import estimated

SQUARED = "nats^2 per unit^2 of z"

SIGNAL = Schema(
    "signal",
    1,
    (
        *CELL,
        SEED,
        CHECKPOINT,
        SITE,
        SPLIT,
        Column("relative_site", "float64", "1", "site / L"),
        Column("stationary", "bool", "-", "a trained shift feeds the site: signal_bias on training data says nothing"),
        Column("step", "int64", "steps", "optimiser steps done at this checkpoint"),
        Column("n", "int64", "samples", "samples measured"),
        Column("units", "int64", "units", "dimension N of the stream at the site"),
        *estimated("signal_bias_sq", SQUARED, "|E zeta|^2"),
        *estimated("signal_feature_sq", SQUARED, "|E[zeta phi(z)']|_F^2, phi(z) = [relu(W1 z), 1] with 4N units"),
        Column("signal_rms_sq", "float64", SQUARED, "E |zeta|^2"),
        Column("phi_rms_sq", "float64", "1", "E |phi(z)|^2"),
        Column("bias_scale_free_sq", "float64", "1", "signal_bias_sq / signal_rms_sq", nullable=True),
        Column(
            "feature_scale_free_sq", "float64", "1", "signal_feature_sq / signal_rms_sq / phi_rms_sq", nullable=True
        ),
    ),
)
