"""People who only want the numbers of their own gradients get them from `jumpboard moments`: it must print what the
library computes, in strict JSON, and answer bad input with one line, never with a trace, a NaN or unpickled code."""

import io
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from jumpboard.cli import main
from jumpboard.measure.rows import read_rows
from jumpboard.measure.summary import STATISTICS, summarise

KEYS = (
    *("S", "V", "T", "R", "R2", "diag", "rho_off", "d_par", "d_2", "d_align", "n_eff", "r"),
    *("cantelli", "chebyshev", "certificate", "normal"),
)
ALWAYS = ("S", "V", "T", "R", "R2", "diag", "rho_off", "n_eff")


def called(*arguments: str | Path) -> tuple[int, str, str]:
    """Status, output and errors of a call in this process; a warning would be a second line, and fails."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            status = main(["moments", *map(str, arguments)])
        except SystemExit as stopped:
            status = int(stopped.code or 0)
    return status, out.getvalue(), err.getvalue()


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def strict(text: str) -> dict[str, Any]:
    return dict(json.loads(text, parse_constant=no_constant))


def saved(path: Path, rows: np.ndarray) -> Path:
    np.save(path, rows)
    return path


def normal_rows(n: int, N: int, mean: float = 0.0, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, N)) + mean


def assert_contract(found: dict[str, Any]) -> None:
    """The keys and kinds that readers of the JSON are promised."""
    assert tuple(found) == ("n", "m", "N", *KEYS, "plugin")
    assert STATISTICS == KEYS
    for key in KEYS:
        assert set(found[key]) == {"estimate", "low", "high"}, key
        low, estimate, high = (found[key][part] for part in ("low", "estimate", "high"))
        if low is not None:
            assert low <= estimate <= high, key
    assert all(isinstance(found[key]["estimate"], float) for key in ALWAYS)
    assert set(found["plugin"]) == set(KEYS) - {"n_eff"}


def test_the_object_holds_what_the_library_computes(tmp_path: Path) -> None:
    """A key with another meaning than the library's would be quoted in somebody's paper."""
    rows = normal_rows(300, 5, mean=0.4)
    status, out, err = called(saved(tmp_path / "rows.npy", rows.astype(np.float32)), "--json")
    found = strict(out)
    assert (status, err, out.count("\n")) == (0, "", 1)
    assert_contract(found)
    assert (found["n"], found["m"], found["N"]) == (300, 300, 5)
    wanted = summarise(read_rows(rows.astype(np.float32)))
    for key in KEYS:
        assert found[key] == pytest.approx(vars(wanted.estimates[key])), key
    assert found["plugin"] == pytest.approx(dict(wanted.plug_in))
    assert found["S"]["low"] < 5 * 0.4**2 < found["S"]["high"]
    assert found["d_align"]["estimate"] == min(found["d_par"]["estimate"], found["d_2"]["estimate"])


def test_a_second_file_holds_test_rows(tmp_path: Path) -> None:
    """Train and test rows of two laws: S = mu'nu, which may be negative, and m of its own."""
    train = saved(tmp_path / "train.npy", normal_rows(120, 4, mean=0.8))
    test = saved(tmp_path / "test.npy", normal_rows(50, 4, mean=-0.8, seed=1))
    status, out, _ = called(train, "--test", test, "--json")
    found = strict(out)
    assert_contract(found)
    assert (status, found["n"], found["m"]) == (0, 120, 50)
    assert found["S"]["high"] < 0
    assert [found[key]["estimate"] for key in ("cantelli", "chebyshev", "certificate")] == [1.0, 1.0, 1.0]
    assert found["r"] == {"estimate": None, "low": None, "high": None}


def test_without_a_signal_ratios_and_bounds_are_null(tmp_path: Path) -> None:
    """Zero or noise in place of null would be drawn as a point in a figure of d_align against width."""
    rows = np.vstack([normal_rows(50, 6), -normal_rows(50, 6)])
    found = strict(called(saved(tmp_path / "rows.npy", rows), "--json")[1])
    assert_contract(found)
    assert found["S"]["estimate"] < 0
    for key in ("d_par", "d_2", "d_align", "r", "cantelli", "chebyshev", "certificate", "normal"):
        assert found[key] == {"estimate": None, "low": None, "high": None}, key
    out = called(tmp_path / "rows.npy")[1]
    assert "S is not resolved" in out


def test_the_table_has_one_aligned_line_per_statistic(tmp_path: Path) -> None:
    """Numbers that slide out of their columns are read off wrongly."""
    status, out, err = called(saved(tmp_path / "rows.npy", normal_rows(30, 3, mean=1.0)))
    lines = out.splitlines()
    assert (status, err) == (0, "")
    assert lines[0].split()[:9] == ["n", "=", "30", "m", "=", "30", "N", "=", "3"]
    assert [line.split()[0] for line in lines[3:]] == list(KEYS)
    assert len({len(line) for line in lines[2:]}) == 1


@given(
    arrays.arrays(
        np.float32,
        st.tuples(st.integers(4, 9), st.integers(1, 12)),
        elements=st.tuples(
            st.sampled_from([-1, 1]), st.one_of(st.integers(0, 2), st.floats(2.0**-60, 2.0**60, width=32))
        ).map(lambda one: float(one[0] * one[1])),
    )
)
@settings(max_examples=60, deadline=None)
def test_any_finite_rows_give_strict_json(rows: np.ndarray) -> None:
    """Constant, duplicate, tiny and huge rows: every number is finite or null, and nothing warns or fails."""
    with tempfile.TemporaryDirectory() as folder:
        status, out, err = called(saved(Path(folder) / "rows.npy", rows), "--json")
        pair = called(Path(folder) / "rows.npy", "--test", Path(folder) / "rows.npy", "--json")
    assert (status, err, pair[0], pair[2]) == (0, "", 0, "")
    assert_contract(strict(out))
    assert_contract(strict(pair[1]))


@pytest.mark.parametrize("dtype", ["float16", "float64", ">f4", "int8", "uint64", "longdouble"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_numeric_layout_is_read(tmp_path: Path, dtype: str, order: Any) -> None:
    """Byte order, integer and column-major files are as good as any other."""
    rows = np.random.default_rng(0).integers(0, 20, (25, 3))
    wanted = called(saved(tmp_path / "plain.npy", rows.astype(np.float32)), "--json")
    assert wanted[0] == 0
    assert called(saved(tmp_path / "rows.npy", np.asarray(rows, dtype=dtype, order=order)), "--json") == wanted


def with_value(value: float) -> np.ndarray:
    rows = normal_rows(6, 3)
    rows[4, 1] = value
    return rows


BAD_ARRAYS = {
    "one dimension": (np.zeros(7), "two dimensions"),
    "three dimensions": (np.zeros((5, 2, 2)), "two dimensions"),
    "no dimension": (np.array(3.0), "two dimensions"),
    "three rows": (np.zeros((3, 2)), "3 rows"),
    "no rows": (np.zeros((0, 2)), "0 rows"),
    "no columns": (np.zeros((5, 0)), "[5, 0]"),
    "NaN": (with_value(np.nan), "row 4"),
    "infinity": (with_value(np.inf), "row 4"),
    "infinity first": (with_value(np.inf)[::-1][1:], "row 0"),
    "words": (np.full((5, 2), "a"), "<U1"),
    "truth values": (np.zeros((5, 2), dtype=bool), "bool"),
    "complex": (np.zeros((5, 2), dtype=complex), "complex128"),
    "dates": (np.zeros((5, 2), dtype="M8[s]"), "datetime64"),
    "records": (np.zeros((5, 2), dtype=[("a", "f8")]), "'a'"),
    "too large": (normal_rows(6, 2) * 1e200, "row 0"),
    "far too large": (np.array([[0.0], [1.0], [-1.7e308], [1.7e308]]), "row 2"),
}


@pytest.mark.parametrize(("rows", "words"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_arrays_without_moments_are_refused_in_one_line(tmp_path: Path, rows: np.ndarray, words: str) -> None:
    """A trace, or moments of something that is not a sample of gradients, helps nobody; also as the second file."""
    width = rows.shape[1] if rows.ndim == 2 and rows.size else 2
    good, bad = saved(tmp_path / "good.npy", normal_rows(6, width)), saved(tmp_path / "bad.npy", rows)
    for arguments in ((bad,), (bad, "--json"), (good, "--test", bad)):
        status, out, err = called(*arguments)
        assert (status, out, err.count("\n")) == (2, "", 1), err
        assert words in err


def bad_files(folder: Path) -> dict[str, str]:
    """Files that are no whole .npy file of numbers, and what must be said of them."""
    whole = saved(folder / "whole.npy", normal_rows(50, 4)).read_bytes()
    contents = {
        "cut data": (whole[:-9], "not a whole .npy file"),
        "cut header": (whole[:40], "not a whole .npy file"),
        "cut magic": (whole[:7], "not a whole .npy file"),
        "broken header": (whole[:12] + b"(" * 50 + whole[62:], "not a whole .npy file"),
        "future version": (whole[:6] + b"\x09" + whole[7:], "not a whole .npy file"),
        "negative shape": (whole.replace(b"(50, 4), }", b"(-50, 4),}"), "not a whole .npy file"),
        "empty": (b"", "not an .npy file"),
        "text": (b"1.0 2.0\n3.0 4.0\n", "not an .npy file"),
        "pickle": (b"\x80\x04\x95\x05\x00\x00\x00", "not an .npy file"),
    }
    for name, (content, _) in contents.items():
        (folder / name).write_bytes(content)
    np.savez(folder / "archive.npz", rows=normal_rows(50, 4))
    (folder / "folder.npy").mkdir()
    said = {name: words for name, (_, words) in contents.items()}
    return said | {"archive.npz": "not an .npy file", "folder.npy": "cannot be read", "missing.npy": "cannot be read"}


def test_files_that_are_not_whole_arrays_are_refused_in_one_line(tmp_path: Path) -> None:
    """A copy that broke off, an archive or a folder must be named as such, not measured and not traced."""
    for name, words in bad_files(tmp_path).items():
        for arguments in ((tmp_path / name,), (tmp_path / "whole.npy", "--test", tmp_path / name)):
            status, out, err = called(*arguments)
            assert (status, out, err.count("\n")) == (2, "", 1), (name, err)
            assert str(tmp_path / name) in err, name
            assert words in err, (name, err)


class Trap:
    """Touches a file when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    """An array of objects is a pickle, and a pickle is a program: someone else's gradients must not run."""
    objects = np.empty((5, 1), dtype=object)
    objects[:, 0] = [Trap(tmp_path / "sprung")] * 5
    np.save(tmp_path / "objects.npy", objects, allow_pickle=True)
    status, out, err = called(tmp_path / "objects.npy")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "objects.npy" in err
    assert not (tmp_path / "sprung").exists()


def test_widths_must_agree(tmp_path: Path) -> None:
    """Means of different widths have no inner product; cutting one would give a number without meaning."""
    train, test = saved(tmp_path / "a.npy", normal_rows(9, 4)), saved(tmp_path / "b.npy", normal_rows(9, 5))
    status, out, err = called(train, "--test", test)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "5 columns" in err
    assert "has 4" in err


@pytest.mark.parametrize("arguments", [(), ("rows.npy", "--test"), ("rows.npy", "--josn"), ("rows.npy", "more.npy")])
def test_a_wrong_call_is_one_line_too(arguments: tuple[str, ...]) -> None:
    """Scripts read the last line, people the first: with one line both see the reason."""
    status, out, err = called(*arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_the_command_runs_as_a_module_without_torch(tmp_path: Path) -> None:
    """A second of imports for a millisecond of sums would be felt in every loop over files."""
    path = saved(tmp_path / "rows.npy", normal_rows(9, 4))
    program = (
        "import sys; from jumpboard.cli import main; status = main(['moments', sys.argv[1]]);"
        "sys.exit(status or 7 * bool({'torch', 'pandas', 'pyarrow', 'matplotlib', 'sklearn'} & set(sys.modules)))"
    )
    light = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True)
    assert light.returncode == 0, light.stderr
    command = [sys.executable, "-m", "jumpboard.cli", "moments"]
    plain = subprocess.run([*command, str(path)], capture_output=True, text=True, env={**os.environ, "COLUMNS": "40"})
    assert (plain.returncode, plain.stdout, plain.stderr) == (0, light.stdout, "")
    absent = subprocess.run([*command, str(tmp_path / "absent.npy")], capture_output=True, text=True)
    assert (absent.returncode, absent.stdout, absent.stderr.count("\n")) == (2, "", 1)
    scripts = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["jumpboard"] == "jumpboard.cli:main"
