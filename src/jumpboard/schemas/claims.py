"""Table `claims`: the ledger, one verdict per claim, net, sample size, checkpoint and split."""

from dataclasses import replace

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import ARCH, CHECKPOINT, DATASET, SPLIT

MOMENT = replace(CHECKPOINT, description=f"{CHECKPOINT.description}; reference: the one that was expanded")

CLAIMS = Schema(
    "claims",
    3,
    (
        Column("claim", "string", "-", "id of the claim in config/claims.yaml", key=True),
        DATASET,
        ARCH,
        Column("samples", "int64", "samples", "training samples M; 0: the claim spans all sample sizes", key=True),
        MOMENT,
        SPLIT,
        Column("paper", "string", "-", "short name of the paper"),
        Column("place", "string", "-", "where the paper says it"),
        Column(
            "source", "string", "-", "stated (by the paper), draft (the group's draft or scripts) or derived (here)"
        ),
        Column("statement", "string", "-", "the claim in our words"),
        Column("verdict", "string", "-", "supported, contradicted, inconclusive or not evaluated"),
        Column("reason", "string", "-", "why the verdict is not plain; empty where it is"),
        Column("statistic", "string", "-", "what `estimate` is, with its unit"),
        Column("estimate", "float64", "see statistic", "mean over seeds; null where not evaluated", nullable=True),
        Column("low", "float64", "see statistic", "lower limit of the two-sided 90 % t interval", nullable=True),
        Column("high", "float64", "see statistic", "upper limit of the two-sided 90 % t interval", nullable=True),
        Column(
            "supports_from",
            "float64",
            "see statistic",
            "least estimate that speaks for the claim; null: none",
            nullable=True,
        ),
        Column("supports_to", "float64", "see statistic", "greatest such estimate; null: none", nullable=True),
        Column("n", "int64", "1", "seeds that the estimate rests on; 0 where there is none"),
        Column("intervals", "string", "-", "everything that the rule looks at, as `name: estimate [low, high]; ...`"),
        Column("configuration", "string", "-", "the nets that the verdict holds for"),
        Column("missing", "string", "-", "expected runs that are missing or diverged; empty if none"),
        Column("control", "string", "-", "what must come out null for the verdict to stand"),
        Column(
            "control_share", "float64", "1", "share of the control's draws or runs that are not null", nullable=True
        ),
        Column("rule_digest", "string", "-", "SHA-256 of the canonical JSON of the claim's whole entry"),
    ),
)
