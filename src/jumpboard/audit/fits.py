"""Which rows the tables of scaling laws must have, from the collected tables that the laws are fitted to.

fits, fitted           in each size, others held fixed; in parameters, samples held fixed; jointly. A law needs two
                       values of its size, in parameters and jointly two sizes that vary; nets that diverged and
                       losses that are not above 0 are left out. Rivals of the power law need `DISTINCT` values
betas, fitted_chain    of each chain of which all nets of some seed are trained, with finite losses and signals
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jumpboard.artefacts import paths
from jumpboard.artefacts.tables import read_table
from jumpboard.audit.run import Run
from jumpboard.configuration.plan import FITTED, Artefact, table_place
from jumpboard.configuration.selection import fit_of
from jumpboard.schemas.chain import CHAIN
from jumpboard.schemas.metrics import METRICS
from jumpboard.theory.comparison import rivals_of
from jumpboard.theory.fitting import DISTINCT
from jumpboard.theory.forms import form_of

Row = Mapping[str, Any]
Keys = tuple[Any, ...]
SIZES = ("depth", "width", "samples")
FREE = {**{size: (size,) for size in SIZES}, "parameters": ("depth", "width"), "joint": SIZES}
ESTIMATORS = ("slope", "curve")


def laws(nets: Sequence[Row]) -> Iterator[tuple[str, Keys, Sequence[str], list[Row]]]:
    """Variable, sizes held fixed (0: free), sizes that vary, and nets, of each law of one checkpoint's nets."""
    for variable, free in FREE.items():
        slices: dict[Keys, list[Row]] = defaultdict(list)
        for net in nets:
            slices[tuple(0 if size in free else net[size] for size in SIZES)].append(net)
        for held, own in slices.items():
            varying = [size for size in free if len({net[size] for net in own}) > 1]
            if len(varying) >= min(2, len(free)):
                yield variable, held, varying, own


def fits(nets: Sequence[Row]) -> Iterator[Keys]:
    """Variable, held sizes, form, parameter."""
    for variable, held, varying, own in laws(nets):
        sizes = varying if variable == "joint" else [variable]
        x = np.array([[net[size] for net in own] for size in sizes], dtype=np.float64)
        y = np.array([net["test_loss"] for net in own], dtype=np.float64)
        law, *rivals = rivals_of(len(sizes))
        several = variable == "joint" or len(set(x[0])) >= DISTINCT
        for form in [law, *rivals] if several else [law]:
            yield from ((variable, *held, form, name) for name in form_of(form, x, y, sizes).names)


def fitted(nets: Sequence[Row]) -> Iterator[Keys]:
    """Variable, sizes, seed."""
    for variable, _, _, own in laws(nets):
        yield from ((variable, *(net[size] for size in SIZES), net["seed"]) for net in own)


def chains(rows: Sequence[Row]) -> dict[Keys, set[int]]:
    """The numbers k of each cell's chain, of cells in which some seed counts."""
    cells: dict[Keys, list[Row]] = defaultdict(list)
    for row in rows:
        cells[tuple(row[size] for size in SIZES)].append(row)
    found = {}
    for cell, own in cells.items():
        loss = "net_test_loss" if any(row["net_fresh_loss"] is None for row in own) else "net_fresh_loss"
        links = {row["k"] for row in own}
        sound: dict[int, set[int]] = defaultdict(set)
        for row in own:
            finite = np.isfinite(row[loss]) and np.isfinite(row["signal_feature_sq"]) and row[loss] > 0
            sound[row["seed"]] |= {row["k"]} if finite and row["status"] == "trained" else set()
        if links in sound.values():
            found[cell] = links
    return found


def wanted_rows(run: Run, table: str, one: Artefact) -> set[Keys]:
    """Keys, after data set and arch, of the rows that a table of the rule `fit_power_law` must have."""
    if table in ("fits", "fitted"):
        metrics = read_table(run.result(_collected("metrics", one)), METRICS).to_pylist()
        block = fit_of(one.keys["dataset"], one.keys["arch"], run.configuration.config) or {}
        rows: Iterable[Keys] = (
            (checkpoint, *key)
            for checkpoint in block["checkpoints"]
            for key in (fits if table == "fits" else fitted)([net for net in metrics if _counts(net, checkpoint)])
        )
        return set(rows)
    if not run.plan.cells(FITTED[table], one.keys["dataset"], one.keys["arch"]):
        return set()
    found = chains(read_table(run.result(_collected("chain", one)), CHAIN).to_pylist())
    return {(*cell, last) for cell, links in found.items() for last in (ESTIMATORS if table == "betas" else links)}


def _counts(net: Row, checkpoint: str) -> bool:
    sound = net["status"] == "trained" and np.isfinite(net["test_loss"]) and net["test_loss"] > 0
    return bool(sound and net["checkpoint"] == checkpoint)


def _collected(table: str, one: Artefact) -> str:
    return paths.filled(table_place(table), {"table": table, **one.keys})
