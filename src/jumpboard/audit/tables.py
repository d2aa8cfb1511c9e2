"""Tables: schema, units and meanings, order and completeness of rows, what is a sum of columns, what is collected.

Identities that hold in every row, to 1e-9 of the larger term:
    metrics      generalisation_gap = test_loss - train_loss
    expansion    new_test_loss = old_test_loss - delta_r_test - delta_erm + transfer
                 gain = old_test_loss - new_test_loss
    widening     gain = old_test_loss - new_test_loss
    ladder       limit = gain - slack
"""

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jumpboard.artefacts import paths
from jumpboard.artefacts.tables import Schema, read_table
from jumpboard.audit.agreement import agreement_fault
from jumpboard.audit.certificates import routes_fault
from jumpboard.audit.fits import wanted_rows
from jumpboard.audit.rows import keys_fault, row_fault
from jumpboard.audit.run import Run, key
from jumpboard.configuration.plan import COLLECTED, Artefact
from jumpboard.configuration.selection import RULES
from jumpboard.data.splits import read_splits
from jumpboard.figures.registry import figure_module
from jumpboard.schemas.card import CARD
from jumpboard.schemas.claims import CLAIMS
from jumpboard.schemas.covariance import COVARIANCE
from jumpboard.schemas.registry import table_schema

ROUNDING = 1e-9
LARGE = 2**30  # bytes
IDENTITIES: dict[str, tuple[dict[str, int], ...]] = {
    "metrics": ({"generalisation_gap": 1, "test_loss": -1, "train_loss": 1},),
    "expansion": (
        {"new_test_loss": 1, "old_test_loss": -1, "delta_r_test": 1, "delta_erm": 1, "transfer": -1},
        {"gain": 1, "old_test_loss": -1, "new_test_loss": 1},
    ),
    "widening": ({"gain": 1, "old_test_loss": -1, "new_test_loss": 1},),
    "ladder": ({"limit": 1, "gain": -1, "slack": 1},),
}


def schema_of(one: Artefact) -> Schema | None:
    """The schema of an artefact's table; None for the splits, which have their own reader."""
    match one.rule:
        case "prepare_dataset" | "prepare_fresh":
            return None
        case "describe_dataset":
            return CARD
        case "evaluate_claims":
            return CLAIMS
        case "draw_figure":
            return figure_module(one.keys["figure"]).SCHEMA
        case "collect":
            return table_schema(one.keys["table"])
    return table_schema(one.path.split("/")[1])


def is_large(path: Path) -> bool:
    """Splits that are not read whole: their digest, header and columns alone are checked."""
    return path.stat().st_size > LARGE


def large_splits(run: Run) -> list[str]:
    """In words, which splits and cards are not held against their rows."""
    splits = [one for one in run.at_hand((".parquet",)) if schema_of(one) is None and key(one) not in run.damaged]
    large = [run.path(one) for one in splits if is_large(run.path(one))]
    return [f"{path}: above {LARGE >> 20} MiB, rows and card not held against each other" for path in large]


def table_fault(run: Run, one: Artefact) -> str:
    """What is wrong with a table in itself; empty where nothing is. Raises InputError for one that cannot be read."""
    path, schema = run.path(one), schema_of(one)
    if schema is None:
        read_splits(path, wanted={} if is_large(path) else None)
        return ""
    table = read_table(path, schema)
    stored = pq.read_schema(path)
    for field in schema.arrow():
        if stored.field(field.name).metadata != field.metadata:
            return f"column '{field.name}' has another unit or description than its schema"
    keys = list(zip(*(table.column(name).to_pylist() for name in schema.keys), strict=True))
    if keys != sorted(set(keys)):
        return "rows are not in the order of their keys, each once"
    for name in (name for name in schema.keys if name in one.keys):
        strange = set(table.column(name).to_pylist()) - {one.keys[name]}
        if strange:
            return f"column '{name}' holds {sorted(strange)[0]} in a table of {one.keys[name]}"
    broken = _identity_fault(table, schema.name) if one.rule != "draw_figure" else ""
    if one.rule == "fit_power_law" and not broken:
        return keys_fault(wanted_rows(run, schema.name, one), {key[2:] for key in keys})
    if broken or one.rule not in RULES:
        return broken
    cell = run.plan.cell(one.keys)
    broken = row_fault(run, schema.name, cell, {key[5:] for key in keys}, partial(_units, run, one))
    broken = broken or (routes_fault(table.to_pylist()) if schema.name == "routes" else "")
    return broken or agreement_fault(run, one, schema.name, table.to_pylist())


def _units(run: Run, one: Artefact, seed: int, site: int) -> int:
    """Units of the stream at a site, as the table `covariance` of the same cell says."""
    path = run.result(paths.filled(paths.cell_table("measure_gradients", COVARIANCE.name), one.keys))
    table = pq.ParquetFile(path).read(columns=["seed", "site", "units"])
    return next(int(row["units"]) for row in table.to_pylist() if (row["seed"], row["site"]) == (seed, site))


def _identity_fault(table: pa.Table, name: str) -> str:
    for signs in IDENTITIES.get(name, ()):
        terms = np.stack([sign * table.column(column).to_numpy().astype(float) for column, sign in signs.items()])
        scale = np.abs(terms).max(axis=0)
        wrong = np.flatnonzero(np.abs(terms.sum(axis=0)) > ROUNDING * np.maximum(scale, 1))
        if len(wrong):
            return f"column '{next(iter(signs))}' of row {wrong[0]} is not what {', '.join([*signs][1:])} give"
    return ""


def collected_fault(run: Run, one: Artefact) -> str:
    """Whether a collected table holds the rows of its cells' tables and no others, bit for bit."""
    schema, rule = table_schema(one.keys["table"]), COLLECTED[one.keys["table"]]
    pattern = paths.cell_table(rule, schema.name)
    cells = run.plan.cells(rule, one.keys["dataset"], one.keys["arch"])
    parts = [read_table(run.result(paths.filled(pattern, cell.as_json())), schema) for cell in cells]
    rows = pa.concat_tables([part.replace_schema_metadata(None) for part in parts])
    rows = rows.sort_by([(name, "ascending") for name in schema.keys])
    own = read_table(run.path(one), schema)
    if len(own) != len(rows):
        return f"has {len(own)} rows, its cells' tables have {len(rows)}"
    for name in rows.column_names:
        if not _bits(own, name).equals(_bits(rows, name)):
            return f"column '{name}' is not that of its cells' tables"
    return ""


def _bits(table: pa.Table, name: str) -> pa.Array:
    """A column in which NaN equals itself."""
    column = table.column(name).combine_chunks()
    column = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
    return column.view(pa.int64()) if pa.types.is_floating(column.type) else column
