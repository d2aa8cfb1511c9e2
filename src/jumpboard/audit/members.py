"""Which checkpoints a cell's files must hold: by the recipe and by which seeds were trained to the end; of expanded
nets by the rows of the table beside them, which are held against the config themselves."""

from collections.abc import Callable

from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import read_checkpoint_header
from jumpboard.artefacts.tables import read_table
from jumpboard.audit.run import Run
from jumpboard.configuration.grid import Cell
from jumpboard.configuration.load import kept_checkpoints
from jumpboard.configuration.selection import block_of
from jumpboard.schemas.chain import CHAIN
from jumpboard.schemas.expansion import EXPANSION
from jumpboard.schemas.metrics import METRICS

Pairs = set[tuple[int, str]]
"""(seed, checkpoint)"""
BEGUN_AT_JUMPBOARDS = ("jumpboard_all", "jumpboard_block")


def split_name(name: str) -> tuple[int, str]:
    """`seed_<s>/<checkpoint>` -> (s, checkpoint). Raises ValueError for any other name."""
    seed, _, checkpoint = name.partition("/")
    if not seed.startswith("seed_") or not checkpoint:
        raise ValueError(f"'{name}' is not seed_<s>/<checkpoint>")
    return int(seed.removeprefix("seed_")), checkpoint


def kept(run: Run, cell: Cell) -> tuple[Pairs, Pairs]:
    """Checkpoints of a cell's trained nets that there must be, and that there can be.

    By the file where it is at hand. Else a net that was trained to the end has all that do not depend on its loss.
    """
    keys = cell.as_json()
    name = paths.filled(paths.cell_checkpoints("train_baseline"), keys)
    if name not in run.folders.not_shipped:
        found = set(map(split_name, read_checkpoint_header(run.result(name))["checkpoints"]))
        return found, found
    return due(run, cell)


def due(run: Run, cell: Cell) -> tuple[Pairs, Pairs]:
    """The same from the recipe and from which seeds were trained to the end."""
    metrics = run.result(paths.filled(paths.cell_table("train_baseline", "metrics"), cell.as_json()))
    rows = read_table(metrics, METRICS).to_pylist()
    trained = set(cell.seeds) - {row["seed"] for row in rows if row["status"] != "trained"}
    recipe = kept_checkpoints(run.configuration.config["trainings"][cell.training])
    certain = {(seed, name) for seed in trained for name in recipe if not name.startswith("loss_")}
    certain |= {(seed, "init") for seed in cell.seeds}
    return certain, {(seed, name) for seed in cell.seeds for name in recipe}


def expanded(run: Run, cell: Cell) -> tuple[Pairs, Pairs]:
    """Checkpoints of a cell's expansions in depth, if it keeps any: those of all jumpboards, and of the arms that began
    at one and did not diverge."""
    if not (block_of("expand_depth", cell, run.configuration.config) or {})["keep_nets"]:
        return set(), set()
    table = run.result(paths.filled(paths.cell_table("expand_depth", EXPANSION.name), cell.as_json()))
    rows = [row for row in read_table(table, EXPANSION).to_pylist() if row["arm"] in BEGUN_AT_JUMPBOARDS]
    found = {(row["seed"], f"site_{row['site']}/jumpboard_{row['jumpboard']}") for row in rows}
    found |= {(row["seed"], f"site_{row['site']}/{row['arm']}") for row in rows if row["status"] == "trained"}
    return found, found


def links(run: Run, cell: Cell) -> tuple[Pairs, Pairs]:
    """Checkpoints of a cell's chain: one for each of its rows."""
    table = run.result(paths.filled(paths.cell_table("expand_chain", CHAIN.name), cell.as_json()))
    found = {(row["seed"], f"k_{row['k']}") for row in read_table(table, CHAIN).to_pylist()}
    return found, found


DUE: dict[str, Callable[[Run, Cell], tuple[Pairs, Pairs]]] = {
    "train_baseline": due,
    "expand_depth": expanded,
    "expand_chain": links,
}
