"""Table `expansion`: what training after an insertion attains, one row per seed, site, arm and kind of jumpboard.

Arms: jumpboard_all and jumpboard_block begin at the jumpboard, zero_all and zero_block at A = 0; `_all` trains all
parameters, `_block` the new block alone; trained_on is the old net trained as long (site -1, kind none), scratch a net
with the block at the same site trained from the beginning for the steps of baseline and expansion (kind none). With
`f` the old net, `f~` the jumpboard and `f+` the selected one:

    Delta_R = L(f) - L(f~)    Delta_ERM = L_train(f~) - L_train(f+)
    tau = (L_test - L_train)(f+) - (L_test - L_train)(f~)
    L_test(f+) = L_test(f) - Delta_R^test - Delta_ERM + tau
"""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.expanded import TRAINED, losses
from jumpboard.schemas.keys import ARM, CELL, JUMPBOARD_KIND, SEED, SITE

EXPANSION = Schema(
    "expansion",
    1,
    (
        *CELL,
        SEED,
        SITE,
        ARM,
        JUMPBOARD_KIND,
        Column("relative_site", "float64", "1", "site / L; null without a site", nullable=True),
        Column("insert_form", "string", "-", "normed, bare, or none without a new block"),
        Column(
            "branch",
            "string",
            "-",
            "selected net: trained, or jumpboard where training ended worse on training samples",
        ),
        *TRAINED,
        *losses("old", "the old net"),
        *losses("trained", "the net that training ended with"),
        *losses("new", "the selected net"),
        Column("delta_r_train", "float64", "nats", "representational gain on training samples", nullable=True),
        Column("delta_r_test", "float64", "nats", "representational gain on test samples", nullable=True),
        Column("delta_r_fresh", "float64", "nats", "representational gain on fresh samples", nullable=True),
        Column("delta_erm", "float64", "nats", "optimisation gain, at least 0", nullable=True),
        Column(
            "transfer",
            "float64",
            "nats",
            "tau: growth of the generalisation gap from the jumpboard to the selected net",
            nullable=True,
        ),
        Column("gain", "float64", "nats", "test loss of the old net minus that of the selected one"),
    ),
)
