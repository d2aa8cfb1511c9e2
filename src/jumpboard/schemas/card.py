"""Table `card`: what a data set is and where it comes from, one row per split, so that two copies can be compared."""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import DATASET, SPLIT

CARD = Schema(
    "card",
    3,
    (
        DATASET,
        SPLIT,
        Column("count", "int64", "samples", "number of samples of the split"),
        Column("classes", "int64", "1", "number of classes of the data set"),
        Column("shape", "string", "-", "shape of one sample, such as 1x28x28"),
        Column("mean", "float64", "1", "mean of all raw values of the split"),
        Column("sd", "float64", "1", "standard deviation of all raw values of the split, divisor n"),
        Column("minimum", "float64", "1", "smallest raw value"),
        Column("maximum", "float64", "1", "largest raw value"),
        Column("sha256", "string", "-", "of the raw bytes of the samples, then of the labels (int64), little-endian"),
        Column("version", "string", "-", "version of the data set"),
        Column("licence", "string", "-", "licence of the data"),
        Column("source", "string", "-", "where the data come from"),
        Column("checksum", "string", "-", "published checksums of the source's files, or none"),
        Column("offline", "bool", "1", "whether the source is there without a network"),
        Column("package", "string", "-", "installed package that holds or makes them"),
        Column("package_version", "string", "-", "its version"),
        Column(
            "bayes_risk",
            "float64",
            "nats",
            "least expected cross-entropy of any net under the law of the data set; null where it is not known",
            nullable=True,
        ),
        Column("bayes_risk_se", "float64", "nats", "standard error of bayes_risk, a Monte Carlo mean", nullable=True),
        Column("bayes_risk_brier", "float64", "1", "least expected Brier score; null where not known", nullable=True),
        Column("input_radius", "float64", "1", "bound on the norm of every raw input; null without one", nullable=True),
    ),
)
