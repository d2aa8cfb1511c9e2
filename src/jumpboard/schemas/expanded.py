"""Columns that the tables of expansions share: who was trained for how long, and the losses before and after."""

from jumpboard.artefacts.tables import Column


def losses(prefix: str, meaning: str) -> tuple[Column, ...]:
    """Columns of the mean cross-entropy of a net on every split; fresh is null where the data set has none."""
    return tuple(
        Column(
            f"{prefix}_{split}_loss",
            "float64",
            "nats",
            f"loss of {meaning}, {split} samples",
            nullable=split == "fresh",
        )
        for split in ("train", "validation", "test", "fresh")
    )


TRAINED = (
    Column("status", "string", "-", "trained, or diverged where the loss became non-finite"),
    Column("steps", "int64", "steps", "optimiser steps of this arm; for a net from scratch those of the baseline too"),
    Column("parameters", "int64", "1", "number of parameters of the net"),
    Column("trained_parameters", "int64", "1", "number of those that this arm trains"),
    Column("training_flops", "float64", "FLOP", "3 x FLOPs of a forward pass x samples seen in this arm"),
)
