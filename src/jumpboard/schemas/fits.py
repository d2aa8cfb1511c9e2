"""Table `fits`: scaling laws of the test loss, one row per fit, form and parameter; what is of the form alone repeats.

A fit takes one variable at a time, other sizes held fixed (`parameters`: all nets of one sample size; `joint`: all
varying sizes at once). The forms are those of `theory.forms`. Numbers of parameters that the data do not identify are
null, for the reason given.
"""

from dataclasses import replace

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import ARCH, CHECKPOINT, DATASET, DEPTH, SAMPLES, WIDTH

VARIABLE = Column("variable", "string", "-", "what varies: depth, width, samples, parameters, or joint", key=True)
HELD = tuple(
    replace(column, description=f"{column.description} that is held fixed; 0: it varies")
    for column in (DEPTH, WIDTH, SAMPLES)
)

FITS = Schema(
    "fits",
    1,
    (
        DATASET,
        ARCH,
        CHECKPOINT,
        VARIABLE,
        *HELD,
        Column("form", "string", "-", "power, joint, exponential, log or constant", key=True),
        Column(
            "parameter", "string", "-", "of the form's formula: E, A, alpha, rate, a, b; joint: A_depth, ...", key=True
        ),
        Column("estimate", "float64", "that of the formula", "null where not identified", nullable=True),
        Column("low", "float64", "that of the formula", "lower limit of the two-sided 90 % interval", nullable=True),
        Column("high", "float64", "that of the formula", "upper limit of the two-sided 90 % interval", nullable=True),
        Column("reason", "string", "-", "why the parameter is not identified; empty where it is"),
        Column("rows", "int64", "1", "trained nets that are fitted"),
        Column("distinct", "int64", "1", "different values of the variable; joint: of the size that has fewest"),
        Column("seeds", "int64", "1", "seeds, which the bootstrap resamples"),
        Column("starts", "int64", "1", "starts of the search"),
        Column("share_at_optimum", "float64", "1", "share of the starts that reached the optimum"),
        Column("objective", "float64", "1", "sum of Huber losses of log residuals"),
        Column("aicc", "float64", "1", "AICc; null with too few rows", nullable=True),
        Column(
            "extrapolation_error",
            "float64",
            "1",
            "root mean square log residual of the largest nets, predicted by the smaller; null where not predicted",
            nullable=True,
        ),
        Column("preferred", "string", "-", "form with the lowest AICc by more than 4 and the least such error, if any"),
        Column(
            "control_share",
            "float64",
            "1",
            "share of permutations of the loss within each seed that prefer this form; null where not drawn",
            nullable=True,
        ),
    ),
)
