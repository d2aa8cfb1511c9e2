"""Table `fitted_chain`: what table `betas` is fitted to, means over seeds, with both fits. One row per chain and k."""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import CELL

FITTED_CHAIN = Schema(
    "fitted_chain",
    1,
    (
        *CELL,
        Column("k", "int64", "blocks", "number of blocks inserted so far", key=True),
        Column("excess", "float64", "nats", "excess risk Delta_k = R_k - R*"),
        Column("fitted_excess", "float64", "nats", "by the fitted curve"),
        Column("signal_feature_sq", "float64", "nats^2 per unit^2 of z", "squared signal, unbiased"),
        Column(
            "fitted_signal", "float64", "nats^2 per unit^2 of z", "by the fitted line; null without one", nullable=True
        ),
        *(
            Column(f"{name}_{limit}", "float64", "1", f"{meaning} of beta by the {name}", nullable=True)
            for name in ("slope", "curve")
            for limit, meaning in (("beta", "estimate"), ("low", "lower limit"), ("high", "upper limit"))
        ),
        Column("slope_reason", "string", "-", "why beta is not identified by the slope; empty where it is"),
        Column("curve_reason", "string", "-", "why beta is not identified by the curve; empty where it is"),
        Column("agreement", "string", "-", "agree, disagree or open"),
        Column("r_star_known", "bool", "1", "R* is the data set's Bayes risk"),
    ),
)
