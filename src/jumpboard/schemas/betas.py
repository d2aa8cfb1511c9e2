"""Table `betas`: the exponent beta of each chain of expansions, estimated twice (Appendix M of paper `depth`).

slope    slope of log |mu_k|^2 on log Delta_k, less 1        curve    from Delta_k = C0 (k + k0)^(-1/beta), k0 free
"""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import CELL

BETAS = Schema(
    "betas",
    1,
    (
        *CELL,
        Column("estimator", "string", "-", "slope or curve", key=True),
        Column("beta", "float64", "1", "null where not identified", nullable=True),
        Column("low", "float64", "1", "lower limit of the two-sided 90 % bootstrap interval over seeds", nullable=True),
        Column(
            "high", "float64", "1", "upper limit of the two-sided 90 % bootstrap interval over seeds", nullable=True
        ),
        Column("reason", "string", "-", "why beta is not identified; empty where it is"),
        Column("exponent_linear", "float64", "1", "1/(3 beta): of P where depth grows as width", nullable=True),
        Column(
            "exponent_sublinear", "float64", "1", "1/(5 beta): of P where depth grows as width^(1/2)", nullable=True
        ),
        Column("r_star", "float64", "nats", "least risk R*: known, or fitted with the curve", nullable=True),
        Column("r_star_low", "float64", "nats", "lower limit of its 90 % interval", nullable=True),
        Column("r_star_high", "float64", "nats", "upper limit of its 90 % interval", nullable=True),
        Column("r_star_known", "bool", "1", "R* is the data set's Bayes risk"),
        Column("risk_split", "string", "-", "samples of the risks: fresh, or test where there are none"),
        Column("points", "int64", "1", "numbers k of inserted blocks"),
        Column("seeds", "int64", "1", "chains that are averaged, one per seed"),
        Column("share_at_optimum", "float64", "1", "share of the curve's starts that reached the optimum"),
        Column("agreement", "string", "-", "agree, disagree, or open: see theory.power_law"),
        Column(
            "control_share",
            "float64",
            "1",
            "share of permutations of the signals over k that are told the same; where open, that agree",
        ),
    ),
)
