"""What two tables of a cell say of one net must be the same: it is not where seeds were swapped in one of them.

metrics                      validation loss: that of `curves` at the step, to rounding
expansion, widening, chain   losses of the old net: those of `metrics` at the reference, to 1e-3: members of
                             another batch are summed otherwise, and on a GPU in a shorter format
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jumpboard.artefacts import paths
from jumpboard.artefacts.tables import read_table
from jumpboard.audit.run import Run
from jumpboard.configuration.plan import Artefact
from jumpboard.schemas.curves import CURVES
from jumpboard.schemas.metrics import METRICS

Row = Mapping[str, Any]
SPLITS = ("train", "validation", "test")
ROUNDING, SUMMED = 1e-9, 1e-3
OLD: dict[str, tuple[str, Callable[[Row], bool]]] = {  # table -> prefix of the old net's losses, rows that have them
    "expansion": ("old", lambda row: True),
    "widening": ("old", lambda row: True),
    "chain": ("net", lambda row: row["k"] == 0),
}


def agreement_fault(run: Run, one: Artefact, table: str, rows: list[Row]) -> str:
    """The first number of a cell's table that another table of the cell does not have; empty where all agree."""
    if table == METRICS.name:
        pairs, tolerance = _beside_curves(run, one, rows), ROUNDING
    elif table in OLD:
        pairs, tolerance = _beside_metrics(run, one, table, rows), SUMMED
    else:
        return ""
    for name, seed, value, other, where in pairs:
        if not (math.isclose(value, other, rel_tol=tolerance) or (math.isnan(value) and math.isnan(other))):
            return f"column '{name}' of seed {seed} holds {value:.6g}, table {where} has {other:.6g} of the same net"
    return ""


Pairs = Iterator[tuple[str, int, float, float, str]]
"""Column, seed, its value, that of the other table, and the other table."""


def _beside_curves(run: Run, one: Artefact, rows: list[Row]) -> Pairs:
    path = run.result(paths.filled(paths.cell_table("train_baseline", CURVES.name), one.keys))
    curves = {
        (row["seed"], row["step"]): row["loss"]
        for row in read_table(path, CURVES).to_pylist()
        if row["split"] == "validation"
    }
    for row in rows:
        place = row["seed"], row["step"]
        if row["status"] == "trained" and place in curves:
            yield "validation_loss", row["seed"], row["validation_loss"], curves[place], CURVES.name


def _beside_metrics(run: Run, one: Artefact, table: str, rows: list[Row]) -> Pairs:
    prefix, has = OLD[table]
    reference = run.plan.params(one.rule, one.keys)["expansion"]["reference"]
    path = run.result(paths.filled(paths.cell_table("train_baseline", METRICS.name), one.keys))
    trained = {row["seed"]: row for row in read_table(path, METRICS).to_pylist() if row["checkpoint"] == reference}
    for row in filter(has, rows):
        for split in SPLITS if row["seed"] in trained else ():
            name, value = f"{prefix}_{split}_loss", row[f"{prefix}_{split}_loss"]
            if value is not None:
                yield name, row["seed"], value, trained[row["seed"]][f"{split}_loss"], METRICS.name
