"""Table `fitted`: what table `fits` is fitted to, with the fitted power law (joint: the joint one), its residuals, and
what the fit to the smaller nets predicts. One row per fit and net."""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.fits import VARIABLE
from jumpboard.schemas.keys import ARCH, CHECKPOINT, DATASET, DEPTH, SAMPLES, SEED, WIDTH

FITTED = Schema(
    "fitted",
    1,
    (
        DATASET,
        ARCH,
        CHECKPOINT,
        VARIABLE,
        DEPTH,
        WIDTH,
        SAMPLES,
        SEED,
        Column("x", "float64", "that of the variable", "value of the variable; joint: number of trained parameters"),
        Column("test_loss", "float64", "nats", "measured"),
        Column("fitted", "float64", "nats", "test loss by the fitted law"),
        Column("low", "float64", "nats", "lower limit of the law's 90 % interval there", nullable=True),
        Column("high", "float64", "nats", "upper limit of the law's 90 % interval there", nullable=True),
        Column("residual", "float64", "1", "log(test_loss/fitted)"),
        Column("held_out", "bool", "1", "one of the largest nets (joint: deepest), that the others predict"),
        Column("predicted", "float64", "nats", "test loss by the law of the smaller nets", nullable=True),
        Column("alpha", "float64", "1", "exponent of the fit; null where not identified, or joint", nullable=True),
        Column("alpha_low", "float64", "1", "lower limit of its 90 % interval", nullable=True),
        Column("alpha_high", "float64", "1", "upper limit of its 90 % interval", nullable=True),
    ),
)
