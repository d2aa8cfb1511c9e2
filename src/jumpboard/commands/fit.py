"""`jumpboard fit TABLE --x ... --y ...`: a scaling law, its rivals, and what the table does not identify.

Works on any CSV or Parquet table with named columns. Rows are resampled, or seeds where `--seed` names their column.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jumpboard.commands.columns import labels, numbers, positive, read_any_table, worst
from jumpboard.errors import InputError
from jumpboard.theory.comparison import Scores, rivals_of, scores
from jumpboard.theory.fitting import Fit, Parameter, fit
from jumpboard.theory.forms import FloatArray

NAME = "fit"
HELP = "a power law and its rivals, fitted to any CSV or Parquet table"
CHOICES = ("power", "joint", "exponential", "log")
SUFFIXES = (".png", ".svg", ".pdf")
LEAST, MOST = 20, 100_000
Group = tuple[FloatArray, FloatArray, list[Any] | None]
"""x [k, n], y [n], and seeds [n] where named."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("table", type=Path, metavar="TABLE", help="CSV or Parquet file, one measured net per row")
    parser.add_argument(
        "--x", action="append", required=True, metavar="X", help="column or name=formula; once per x of the form joint"
    )
    parser.add_argument("--y", required=True, metavar="Y", help="column or name=formula, such as test_loss")
    parser.add_argument("--seed", metavar="COL", help="column of seeds: these are resampled, else rows")
    parser.add_argument("--group", metavar="COL", help="column of groups, each fitted alone")
    parser.add_argument("--form", choices=CHOICES, default="power", help="default: power")
    parser.add_argument(
        "--drop-worst", type=int, default=0, metavar="N", help="leave out the N rows with the highest y"
    )
    parser.add_argument("--bootstrap", type=int, default=200, metavar="N", help="resamples, default 200")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the fit to a .png, .svg or .pdf")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Read, fit, print. Raises InputError for bad input."""
    names, groups = _groups(arguments)
    fits = {
        group: fit(arguments.form, x, y, names, seeds, arguments.bootstrap) for group, (x, y, seeds) in groups.items()
    }
    told = {group: _described(arguments, names, groups[group], one) for group, one in fits.items()}
    if arguments.plot is not None:
        _draw(arguments, names, groups, fits)
    if arguments.json:
        told = {group: {**one, "parameters": _as_json(one["parameters"])} for group, one in told.items()}
        print(json.dumps({"groups": told} if arguments.group is not None else told[""], allow_nan=False))
    else:
        print(
            "\n\n".join(_as_table(f"{arguments.group} = {group}" if group else "", one) for group, one in told.items())
        )
    return 0


def _groups(arguments: argparse.Namespace) -> tuple[list[str], dict[str, Group]]:
    """Names of the x, and the data of each group; of the one group `` where none is named."""
    form, texts = arguments.form, arguments.x
    if len(texts) > 1 and form != "joint":
        raise InputError(f"--x is given {len(texts)} times; accepted for --form {form}: once, more only for joint")
    if not LEAST <= arguments.bootstrap <= MOST:
        raise InputError(f"--bootstrap is {arguments.bootstrap}; accepted: {LEAST} to {MOST}")
    if arguments.plot is not None and arguments.plot.suffix not in SUFFIXES:
        raise InputError(f"--plot is {arguments.plot}; accepted: a file that ends in {', '.join(SUFFIXES)}")
    table = read_any_table(arguments.table)
    if not 0 <= arguments.drop_worst < table.num_rows:
        raise InputError(f"--drop-worst is {arguments.drop_worst}; accepted: 0 to {table.num_rows - 1} of this table")
    y_name, y = numbers(table, arguments.y, "--y")
    positive(y, y_name, "--y")
    found = dict(numbers(table, text, "--x") for text in texts)
    if len(found) < len(texts):
        raise InputError(f"--x names '{texts[-1]}' twice; accepted: each x once")
    seeds = labels(table, arguments.seed, "--seed") if arguments.seed is not None else None
    members = (
        [str(value) for value in labels(table, arguments.group, "--group")]
        if arguments.group is not None
        else [""] * len(y)
    )
    kept = worst(y, arguments.drop_worst)
    x = np.stack(list(found.values()))
    groups: dict[str, Group] = {}
    for group in dict.fromkeys(members[row] for row in kept):
        rows = [row for row in kept if members[row] == group]
        groups[group] = (x[:, rows], y[rows], [seeds[row] for row in rows] if seeds is not None else None)
        for name, values in zip(found, groups[group][0], strict=True):
            where = f" in group '{group}'" if group else ""
            if form != "exponential":
                positive(values, name, "--x")
            if len(np.unique(values)) < 2:
                raise InputError(f"--x '{name}': is {values[0]:g} in all rows{where}; accepted: two different values")
    return list(found), groups


def _described(arguments: argparse.Namespace, names: Sequence[str], group: Group, one: Fit) -> dict[str, Any]:
    """All that is told of one fit; `parameters` are still Parameter."""
    x, y, seeds = group
    compared = [form for form in rivals_of(len(names)) if _defined(form, x)]
    scored = {form: scores(form, x, y[None], names) for form in dict.fromkeys([arguments.form, *compared])}
    return {
        "form": arguments.form,
        "parameters": dict(one.parameters),
        "objective": one.optimum.objective,
        "starts": one.optimum.starts,
        "share_at_optimum": one.optimum.share,
        **_score(scored[arguments.form]),
        "rivals": {form: _score(score) for form, score in scored.items() if form != arguments.form},
        "n": len(y),
        "distinct": {name: len(np.unique(values)) for name, values in zip(names, x, strict=True)},
        "resampled": "rows" if seeds is None else "seeds",
        "bootstrap": arguments.bootstrap,
        "not_identified": {name: value.reason for name, value in one.parameters.items() if not value.identified},
    }


def _defined(form: str, x: FloatArray) -> bool:
    """An exponential alone takes x that are not positive."""
    return form in ("exponential", "constant") or bool((x > 0).all())


def _score(score: Scores) -> dict[str, float | None]:
    numbers = {"objective": score.objective, "aicc": score.aicc, "extrapolation_error": score.error}
    return {name: float(one[0]) if np.isfinite(one[0]) else None for name, one in numbers.items()}


def _as_json(parameters: Mapping[str, Parameter]) -> dict[str, dict[str, Any]]:
    return {
        name: {"estimate": one.estimate, "low": one.low, "high": one.high, "identified": one.identified}
        for name, one in parameters.items()
    }


def _as_table(group: str, told: Mapping[str, Any]) -> str:
    """The same for people."""
    lines = [group] if group else []
    spread = ", ".join(f"{count} different {name}" for name, count in told["distinct"].items())
    lines += [
        f"form {told['form']}, {told['n']} rows, {spread}; two-sided 90 % limits, {told['resampled']} resampled",
        "",
    ]
    lines.append(f"{'':<16}" + "".join(f"{title:>14}" for title in ("estimate", "low", "high")))
    for name, one in told["parameters"].items():
        cells = "".join(f"{number:>14.6g}" for number in (one.estimate, one.low, one.high) if number is not None)
        lines.append(f"{name:<16}{cells or f'    not identified: {one.reason}'}")
    lines += ["", f"{told['share_at_optimum']:.0%} of {told['starts']} starts reached the optimum", ""]
    lines.append(f"{'':<16}" + "".join(f"{title:>14}" for title in ("AICc", "extrapolation")))
    for form, score in {told["form"]: told, **told["rivals"]}.items():
        pair = (score["aicc"], score["extrapolation_error"])
        lines.append(f"{form:<16}" + "".join(f"{'-' if one is None else f'{one:.4g}':>14}" for one in pair))
    lines += ["", "extrapolation: error of the largest x predicted from the others, root mean square of log residuals"]
    return "\n".join(lines)


def _draw(
    arguments: argparse.Namespace, names: Sequence[str], groups: Mapping[str, Group], fits: Mapping[str, Fit]
) -> None:
    from jumpboard.figures.fit_plot import draw_fits, save_as

    points = {group: (x, y) for group, (x, y, _) in groups.items()}
    figure = draw_fits(points, fits, names, arguments.y.partition("=")[0])
    try:
        save_as(figure, arguments.plot)
    except OSError as error:
        raise InputError(f"--plot {arguments.plot}: cannot be written: {error.strerror}") from None
