"""`jumpboard fit` is for any table of anybody's nets: it must say what the library computes, in strict JSON, never run
what a formula says, and answer bad input with one line that names the argument."""

import csv
import io
import json
import os
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jumpboard.cli import main
from jumpboard.theory.fitting import fit

SEEDS, DEPTHS = 4, 2 ** np.arange(7)
Columns = dict[str, list[Any]]


def called(*arguments: str | Path) -> tuple[int, str, str]:
    """Status, output and errors; a warning would be a second line, and fails."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            status = main(["fit", *map(str, arguments)])
        except SystemExit as stopped:
            status = int(stopped.code or 0)
    return status, out.getvalue(), err.getvalue()


def told(*arguments: str | Path) -> dict[str, Any]:
    status, out, err = called(*arguments, "--json")
    assert (status, err) == (0, "")
    return dict(json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON")))


def planted() -> Columns:
    generator = np.random.default_rng(0)
    depth = np.repeat(DEPTHS, SEEDS)
    loss = (0.5 + depth**-0.7) * np.exp(0.01 * generator.standard_normal(len(depth)))
    return {
        "depth": depth.tolist(), "seed": np.tile(np.arange(SEEDS), 7).tolist(), "loss": loss.tolist(),
        "flop": (6.0 * depth).tolist(), "arch": ["a", "b"] * 14, "test loss": loss.tolist(),
    }  # fmt: skip


def as_csv(path: Path, columns: Columns) -> Path:
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return as_csv(tmp_path / "t.csv", planted())


def test_it_says_what_the_library_computes(table: Path) -> None:
    one, columns = told(table, "--x", "depth", "--y", "loss", "--seed", "seed"), planted()
    right = fit("power", np.array([columns["depth"]], float), np.array(columns["loss"]), (), columns["seed"])
    for name, parameter in right.parameters.items():
        expected = {"estimate": parameter.estimate, "low": parameter.low, "high": parameter.high, "identified": True}
        assert one["parameters"][name] == pytest.approx(expected, rel=1e-9)
    assert {"form", "parameters", "objective", "starts", "share_at_optimum", "rivals"} <= set(one)
    assert (one["form"], one["resampled"], one["starts"], one["n"]) == ("power", "seeds", 45, 28)
    assert list(one["rivals"]) == ["exponential", "log", "constant"]
    assert one["aicc"] < min(rival["aicc"] for rival in one["rivals"].values())
    assert told(table, "--x", "depth", "--y", "loss")["resampled"] == "rows"


def test_parquet_and_csv_say_the_same(table: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table(planted()), tmp_path / "t.parquet")
    call = ("--x", "depth", "--y", "test loss", "--bootstrap", "50")
    assert told(tmp_path / "t.parquet", *call) == told(table, *call)


@pytest.mark.parametrize(
    "formula", ["d=flop/6", "d = flop / (2*(1+2))", "d=(flop**2)**0.5/6", "d=--depth+0*flop", "d=+depth"]
)
def test_formulas_are_arithmetic_on_columns(table: Path, formula: str) -> None:
    one = told(table, "--x", formula, "--y", "loss")
    plain = told(table, "--x", "depth", "--y", "loss")["parameters"]
    assert one["distinct"] == {"d": 7}
    assert one["parameters"]["alpha"] == pytest.approx(plain["alpha"], rel=1e-6)


def test_forms_groups_and_left_out_rows(table: Path) -> None:
    joint = told(
        table, "--x", "depth", "--x", "w=flop**0.5+seed", "--y", "loss", "--form", "joint", "--bootstrap", "20"
    )
    assert list(joint["parameters"]) == ["E", "A_depth", "alpha_depth", "A_w", "alpha_w"]
    groups = told(table, "--x", "depth", "--y", "loss", "--group", "arch")["groups"]
    assert {name: one["n"] for name, one in groups.items()} == {"a": 14, "b": 14}
    for form, names in (("exponential", ["E", "A", "rate"]), ("log", ["a", "b"])):
        assert list(told(table, "--x", "depth", "--y", "loss", "--form", form)["parameters"]) == names
    assert told(table, "--x", "depth", "--y", "loss", "--drop-worst", "4")["distinct"] == {"depth": 6}


@pytest.mark.parametrize("kept", [3 * SEEDS, 2], ids=["3 depths", "2 rows"])
def test_too_few_points_give_no_exponent(tmp_path: Path, kept: int) -> None:
    rows = {name: values[: 12 if kept > 2 else 5][-kept:] for name, values in planted().items()}
    path = as_csv(tmp_path / "t.csv", rows)
    one = told(path, "--x", "depth", "--y", "loss")
    assert one["parameters"]["alpha"] == {"estimate": None, "low": None, "high": None, "identified": False}
    assert "alpha" in one["not_identified"]
    status, out, _ = called(path, "--x", "depth", "--y", "loss")
    assert status == 0
    assert "not identified" in out


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_plots_are_written_whole_and_alike(table: Path, tmp_path: Path, suffix: str) -> None:
    path, pictures = tmp_path / f"p.{suffix}", []
    for _ in range(2):
        assert called(table, "--x", "depth", "--y", "loss", "--group", "arch", "--plot", path)[0] == 0
        pictures.append(path.read_bytes())
    assert pictures[0] == pictures[1]
    assert len(pictures[0]) > 5000


BAD: dict[str, tuple[list[str], str]] = {
    "no such column": (["--x", "width", "--y", "loss"], "--x: column 'width'"),
    "not a number": (["--x", "arch", "--y", "loss"], "--x: column 'arch' holds string"),
    "a call": (["--x", "d=abs(depth)", "--y", "loss"], "Call in a formula"),
    "an attribute": (["--x", "d=depth.__class__", "--y", "loss"], "Attribute in a formula"),
    "a comparison": (["--x", "d=depth<3", "--y", "loss"], "Compare in a formula"),
    "text": (["--x", "d='a'*9999999999", "--y", "loss"], "Constant in a formula"),
    "true": (["--x", "d=depth+True", "--y", "loss"], "Constant in a formula"),
    "huge power": (["--x", "d=9**9**9**9*depth", "--y", "loss"], "row 1 is inf"),
    "huge number": (["--x", f"d=depth*{10**400}", "--y", "loss"], "too large"),
    "deep": (["--x", "d=" + "-" * 60 + "depth", "--y", "loss"], "nested more than 50"),
    "very deep": (["--x", "d=" + "(" * 400 + "depth" + ")" * 400, "--y", "loss"], "--x"),
    "long": (["--x", "d=" + "+".join(["depth"] * 400), "--y", "loss"], "accepted: up to 1000"),
    "not a formula": (["--x", "d=depth +", "--y", "loss"], "not a formula"),
    "no name": (["--x", "=depth", "--y", "loss"], "lacks a name"),
    "division by 0": (["--x", "d=1/(depth-1)", "--y", "loss"], "row 1 is inf"),
    "negative x": (["--x", "d=depth-2", "--y", "loss"], "--x 'd': row 1 is -1"),
    "negative y": (["--x", "depth", "--y", "l=loss-1"], "--y 'l': row"),
    "constant x": (["--x", "d=depth*0+3", "--y", "loss"], "is 3 in all rows"),
    "constant in a group": (["--x", "depth", "--y", "loss", "--group", "depth"], "in group '1'"),
    "same x twice": (["--x", "depth", "--x", "depth", "--y", "loss", "--form", "joint"], "twice"),
    "two x": (["--x", "depth", "--x", "flop", "--y", "loss"], "--x is given 2 times"),
    "empty seed": (["--x", "depth", "--y", "loss", "--seed", ""], "--seed: column ''"),
    "no seed column": (["--x", "depth", "--y", "loss", "--seed", "s"], "--seed: column 's'"),
    "too many dropped": (["--x", "depth", "--y", "loss", "--drop-worst", "28"], "accepted: 0 to 27"),
    "too few resamples": (["--x", "depth", "--y", "loss", "--bootstrap", "3"], "accepted: 20 to"),
    "unknown form": (["--x", "depth", "--y", "loss", "--form", "cubic"], "--form"),
    "unknown picture": (["--x", "depth", "--y", "loss", "--plot", "p.bmp"], "--plot is p.bmp"),
    "no folder": (["--x", "depth", "--y", "loss", "--plot", "/proc/none/p.png"], "--plot"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_one_line(table: Path, case: str) -> None:
    arguments, named = BAD[case]
    status, out, err = called(table, *arguments)
    assert (status, out) == (2, "")
    assert named in err
    assert err.count("\n") == 1
    assert len(err) < 600


@pytest.mark.parametrize("name", ["depth", "loss", "seed", "arch"])
@pytest.mark.parametrize("value", ["", "NaN", "nan"])
def test_a_missing_value_is_named(tmp_path: Path, name: str, value: str) -> None:
    columns = planted()
    columns[name][5] = value
    path = as_csv(tmp_path / "t.csv", columns)
    status, _, err = called(path, "--x", "depth", "--y", "loss", "--seed", "seed", "--group", "arch")
    if name == "arch":  # text may be anything
        assert status in (0, 2)
    else:
        assert status == 2
        assert "row 6" in err
    assert err.count("\n") <= 1


def test_bad_files_are_one_line(tmp_path: Path) -> None:
    """A pipe would block for ever, a damaged file would show a trace."""
    header = b"depth,loss\n"
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table(planted()), whole)
    contents = {
        "empty": b"", "header": header, "twice": b"depth,depth,loss\n1,1,1\n", "ragged": header + b"1,2\n1,2,3\n",
        "binary": bytes(range(256)) * 9, "cut": whole.read_bytes()[:-50], "magic": b"PAR1",
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "closed").write_bytes(header)
    for name in [*contents, "fifo", "none", "."]:
        status, out, err = called(tmp_path / name, "--x", "depth", "--y", "loss")
        assert (status, out) == (2, ""), name
        assert err.count("\n") == 1, name
        assert str(tmp_path) in err or name == ".", err
