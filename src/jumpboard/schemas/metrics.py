"""Table `metrics`: what a trained net attains, one row per seed and checkpoint."""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import CELL, CHECKPOINT, SEED

METRICS = Schema(
    "metrics",
    1,
    (
        *CELL,
        SEED,
        CHECKPOINT,
        Column("status", "string", "-", "trained, or diverged where the loss became non-finite"),
        Column("step", "int64", "steps", "optimiser steps done at this checkpoint"),
        Column("parameters", "int64", "1", "number of trained parameters"),
        Column("forward_flops", "int64", "FLOP/sample", "forward pass of one sample: 2 per multiply-add of products"),
        Column("training_flops", "float64", "FLOP", "3 x forward_flops x samples seen up to this step"),
        Column("train_loss", "float64", "nats", "mean cross-entropy on the M training samples, without augmentation"),
        Column("train_accuracy", "float64", "1", "share of the training samples classified correctly"),
        Column("validation_loss", "float64", "nats", "mean cross-entropy on the validation split"),
        Column("validation_accuracy", "float64", "1", "share of the validation split classified correctly"),
        Column("test_loss", "float64", "nats", "mean cross-entropy on the test split"),
        Column("test_accuracy", "float64", "1", "share of the test split classified correctly"),
        Column("generalisation_gap", "float64", "nats", "test_loss - train_loss"),
    ),
)
