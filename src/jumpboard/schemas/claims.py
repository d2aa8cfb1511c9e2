"""Table `claims`: the ledger, one verdict per claim, net, sample size and checkpoint."""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import ARCH, CHECKPOINT, DATASET

CLAIMS = Schema(
    "claims",
    1,
    (
        Column("claim", "string", "-", "id of the claim in config/claims.yaml", key=True),
        DATASET,
        ARCH,
        Column("samples", "int64", "samples", "training samples M; 0: the claim spans all sample sizes", key=True),
        CHECKPOINT,
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
        Column("n", "int64", "1", "seeds that the estimate rests on; 0 where there is none"),
        Column("intervals", "string", "-", "everything that the rule looks at, as `name: estimate [low, high]; ...`"),
        Column("configuration", "string", "-", "the grid that the verdict holds for"),
        Column("missing", "string", "-", "expected runs that are missing or diverged; empty if none"),
        Column("control", "string", "-", "the permutation under which the rule must not say supported"),
        Column("control_share", "float64", "1", "share of 200 permutations called supported", nullable=True),
        Column("rule_digest", "string", "-", "SHA-256 of the canonical JSON of the claim's whole entry"),
    ),
)
