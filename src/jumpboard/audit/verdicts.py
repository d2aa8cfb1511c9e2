"""What is computed from other files, computed again: verdicts, what figures plot, cards, the README's table.

Numbers may differ by 1e-9 of their size, as libraries on another machine round otherwise. The README and the figures of
the checkout show the released run: they are held against it alone.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jumpboard.artefacts import paths
from jumpboard.artefacts.generated import read_block
from jumpboard.artefacts.tables import Schema, read_header, read_table
from jumpboard.artefacts.verification import Fault
from jumpboard.audit.run import Run
from jumpboard.audit.tables import is_large
from jumpboard.claims.readme_table import readme_table
from jumpboard.configuration.load import Configuration, load, merged, read_yaml
from jumpboard.configuration.plan import Artefact, table_place
from jumpboard.configuration.validation import checkout
from jumpboard.data.card import card_rows, known_law
from jumpboard.data.splits import read_splits
from jumpboard.errors import InputError
from jumpboard.figures.registry import figure_entry, figure_module
from jumpboard.schemas.card import CARD
from jumpboard.schemas.claims import CLAIMS
from jumpboard.schemas.registry import table_schema
from jumpboard.stages.evaluate_claims import TABLES, verdicts

ROUNDING = 1e-9
Row = Mapping[str, Any]


def recomputed(run: Run) -> tuple[list[dict[str, Any]], str]:
    """Each stored verdict beside the one that the collected tables give (`recomputed`, None where they give no such
    row), and the first difference in words. Raises InputError for tables that no verdict can be computed from."""
    sources = {
        schema.name: [
            run.result(paths.filled(table_place(schema.name), {"table": schema.name, "dataset": dataset, "arch": arch}))
            for dataset, arch in run.plan.nets_of(schema.name)
        ]
        for schema, _ in TABLES
    }
    rows = verdicts(run.resolved, sources)
    stored = read_table(run.result(paths.CLAIMS), CLAIMS).to_pylist()
    again = {tuple(row[name] for name in CLAIMS.keys): row for row in rows}
    shown = [
        {name: row[name] for name in (*CLAIMS.keys, "verdict")}
        | {"recomputed": again.get(tuple(row[name] for name in CLAIMS.keys), {}).get("verdict")}
        for row in stored
    ]
    return shown, difference(stored, rows, CLAIMS)


def figure_fault(run: Run, one: Artefact) -> str:
    """What is wrong with the table that a figure plots; empty where it is what the collected table gives."""
    figure, net = one.keys["figure"], {name: key for name, key in one.keys.items() if name != "figure"}
    module, source = figure_module(figure), figure_entry(figure).table
    place = paths.filled(table_place(source), {"table": source, **net})
    rows = read_table(run.result(place), table_schema(source)).to_pylist()
    stored = read_table(run.path(one), module.SCHEMA).to_pylist()
    return difference(stored, module.plotted(rows, **net), module.SCHEMA)


def card_fault(run: Run, one: Artefact) -> str:
    """What is wrong with the card of a data set; empty where it is that of the splits."""
    splits = run.result(paths.filled(paths.dataset_table("prepare_dataset", "splits"), one.keys))
    if is_large(splits):
        return ""
    params = run.plan.params(one.rule, one.keys)
    made_with = read_header(splits)["versions"].get(params["package"])
    rows = card_rows(one.keys["dataset"], read_splits(splits), params, made_with, known_law(params))
    return difference(read_table(run.path(one), CARD).to_pylist(), list(rows), CARD)


def config_notes(run: Run) -> list[str]:
    """Nothing where the run's config is one of the checkout's, alone or as an overlay on the default."""
    if any(json.loads(json.dumps(one.as_json())) == run.resolved for one in _configurations(run)):
        return []
    return ["config: it is none of this checkout's; another grid than was run would look the same"]


def _configurations(run: Run) -> Iterator[Configuration]:
    """Those of the checkout that write to the folder that the run's config names, as no other can be its own."""
    folder = checkout() / "config"
    try:
        default = read_yaml(folder / "config.yaml")
    except InputError:  # no checkout at hand
        return
    others = {checkout() / default[name] for name in ("datasets", "claims")} | {folder / "config.yaml"}
    for overlay in (None, *sorted({*folder.glob("*.yaml")} - others)):
        try:
            config = merged(default, read_yaml(overlay)) if overlay else default
            if config["results"] == run.resolved["config"]["results"]:
                yield load(config)
        except InputError:  # an overlay that wants data that are not here
            continue


def difference(stored: Sequence[Row], again: Sequence[Row], schema: Schema) -> str:
    """The first difference between stored and recomputed rows, in words, verdicts first; empty where they agree."""
    ours, theirs = ({tuple(row[name] for name in schema.keys): row for row in rows} for rows in (stored, again))
    for where in sorted(ours.keys() ^ theirs.keys(), key=str):
        return f"{'/'.join(map(str, where))}: {'is not' if where in ours else 'only'} there when recomputed"
    columns = sorted((column.name for column in schema.columns), key=lambda name: name != "verdict")
    for column in columns:
        for where, row in ours.items():
            if not _agree(row[column], theirs[where][column]):
                other = theirs[where]
                why = (
                    f" ({other['reason']}: {other['missing']})" if column == "verdict" and other.get("missing") else ""
                )
                place = "/".join(map(str, where))
                return f"{place}: {column} is {row[column]!r}, recomputed {other[column]!r}{why}"
    return ""


def _agree(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=1e-12) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def pictures_note(run: Run) -> list[str]:
    """In words, that pictures are not drawn again, of which the tables that they show are verified."""
    shown = [one for one in run.artefacts if one.rule == "draw_figure" and not one.path.endswith(".parquet")]
    count = len(shown) if run.folders.figures else 0
    return [f"pictures: {count} known by digest; what they plot is verified, they are not drawn again"] if count else []


def readme_faults(run: Run) -> tuple[list[Fault], list[str]]:
    """The README's generated table against the run, where the run is the one that the README shows."""
    page = checkout() / "README.md"
    released = checkout() / "results" / paths.RELEASED / paths.MANIFEST
    own = run.folders.results / paths.MANIFEST
    if not page.is_file() or not released.is_file():
        return [], ["README: no checkout at hand"]
    if released.read_bytes() != own.read_bytes() or f"results/{paths.CLAIMS}" in run.damaged:
        return [], ["README: it shows the released run, not this one"]
    rows = read_table(run.folders.results / paths.CLAIMS, CLAIMS).to_pylist()
    if read_block(page, "claims") != readme_table(rows).rstrip("\n"):
        return [Fault(str(page), "its table of claims is not that of the run")], []
    return [], []
