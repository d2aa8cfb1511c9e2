"""`jumpboard moments ROWS.npy [--test ROWS2.npy] [--json]`: unbiased moments, alignment and bounds of any n x N array.

Files are mapped, never unpickled, and read in blocks: memory grows with the smaller of n and N, not with the file.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from jumpboard.errors import InputError
from jumpboard.measure.moments import Rows
from jumpboard.measure.rows import CentredRows, check_rows, read_rows
from jumpboard.measure.summary import Summary, summarise

NAME = "moments"
HELP = "unbiased moments, alignment, bounds and intervals of an n x N array"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("rows", type=Path, metavar="ROWS.npy", help="n x N array, one sample per row, n >= 4")
    parser.add_argument(
        "--test", type=Path, metavar="ROWS2.npy", help="m x N array of independent samples, of the same law or another"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def open_rows(path: Path) -> Rows:
    """Map an .npy file. Raises InputError, naming the file, for anything else and for what `check_rows` refuses."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # to open a pipe is to wait for its writer
            raise InputError(f"{path}: a pipe or device; accepted are .npy files")
        with path.open("rb") as stream:
            magic = stream.read(len(np.lib.format.MAGIC_PREFIX))
        if magic != np.lib.format.MAGIC_PREFIX:
            raise InputError(f"{path}: not an .npy file; accepted are arrays saved with numpy.save")
        rows = np.lib.format.open_memmap(path, mode="r")
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; an .npy file is needed") from None
    except Exception as error:  # numpy parses a damaged header as Python source, which can fail in many ways
        raise InputError(f"{path}: not a whole .npy file of numbers: {shorten(str(error), 80)}") from None
    check_rows(rows, str(path))
    return rows


def _read(path: Path, test: Path | None) -> tuple[CentredRows, CentredRows | None]:
    rows = open_rows(path)
    if test is None:
        return read_rows(rows, str(path)), None
    others = open_rows(test)
    if rows.shape[1] != others.shape[1]:
        raise InputError(f"{test}: has {others.shape[1]} columns, {path} has {rows.shape[1]}; both must have as many")
    return read_rows(rows, str(path)), read_rows(others, str(test))


def as_json(summary: Summary) -> dict[str, Any]:
    """The object that `--json` prints."""
    estimates = {name: asdict(one) for name, one in summary.estimates.items()}
    return {"n": summary.n, "m": summary.m, "N": summary.N, **estimates, "plugin": dict(summary.plug_in)}


def as_table(summary: Summary) -> str:
    """The same for people: one line per statistic; `-` where there is no number."""
    lines = [f"n = {summary.n}  m = {summary.m}  N = {summary.N}  limits: two-sided 90 %", ""]
    lines.append(f"{'':<12}" + "".join(f"{title:>14}" for title in ("estimate", "low", "high", "plug-in")))
    for name, one in summary.estimates.items():
        numbers = (one.estimate, one.low, one.high, summary.plug_in.get(name))
        cells = "".join(f"{'-' if number is None else f'{number:.6g}':>14}" for number in numbers)
        lines.append(f"{name:<12}{cells}")
    if not summary.estimates["S"].resolved:
        lines += ["", "S is not resolved: its lower limit is not above 0, so nothing is said about alignment."]
    return "\n".join(lines)


def run(arguments: argparse.Namespace) -> int:
    """Read, measure, print. Raises InputError for bad input."""
    summary = summarise(*_read(arguments.rows, arguments.test))
    print(json.dumps(as_json(summary), allow_nan=False) if arguments.json else as_table(summary))
    return 0
