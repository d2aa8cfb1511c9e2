"""Table `widening`: what training after a function-preserving widening attains, one row per seed and arm.

Arms: widened trains all parameters of the widened net, trained_on the old net as long, scratch a net of the new width
from the beginning for the steps of baseline and expansion. The optimiser begins anew in all.
"""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.expanded import TRAINED, losses
from jumpboard.schemas.keys import ARM, CELL, SEED

WIDENING = Schema(
    "widening",
    1,
    (
        *CELL,
        SEED,
        ARM,
        Column("new_width", "int64", "units", "width of the net of this arm"),
        Column(
            "preserved",
            "float64",
            "1",
            "largest change of a logit by the widening, relative to the largest logit; null without one",
            nullable=True,
        ),
        *TRAINED,
        *losses("old", "the old net"),
        *losses("new", "the net of this arm"),
        Column("gain", "float64", "nats", "test loss of the old net minus that of this arm's"),
    ),
)
