"""The table of bad inputs: each ends in one line that names the file or key, what was found and what is accepted, with
status 2 from commands and stages.

Damaged files have a table of their own (test_bad_files), and so have single parts: mistakes in configs
(test_configuration), in inventory entries (test_inventory), in copies of data sets (test_copy_faults), in other
people's nets (test_timm_net).
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import test_cli_moments as moments_command
import test_configuration as configs
from calls import refusal
from jumpboard.configuration.load import load_files, read_yaml
from jumpboard.configuration.workflow import check_directory
from jumpboard.errors import InputError

LONG = 10**9
CONFIGS: list[tuple[str, Any, str]] = [  # place, value, the answer
    ("grid.0.product.depth", [LONG], "config: grid[0].product.depth[0] is 1000000000; accepted: at most 10000"),
    ("grid.0.product.width", [LONG], "config: grid[0].product.width[0] is 1000000000; accepted: at most 65536"),
    ("grid.0.product.samples", [10**12], "grid[0].product.samples[0] is 1000000000000; accepted: at most 1000000000"),
    ("grid.0.seeds", [2**63], "grid[0].seeds[0] is 9223372036854775808; accepted: at most 9223372036854775807"),
    ("grid.0.seeds", ["0"], "grid[0].seeds[0] is '0'; accepted: integer"),
    ("grid.1.zip.samples", [1], "grid: resnet_bn sees batches of 1 sample on 1 samples of digits by trainings.resnet"),
    ("trainings.resnet.batch", 1, "sees batches of 1 sample on 200 samples of digits by trainings.resnet; accepted: 2"),
    ("trainings.resmlp.batch", 10**10, "trainings.resmlp.batch is 10000000000; accepted: at most 1000000000"),
    ("trainings.resmlp.steps", 10**12, "trainings.resmlp.steps is 1000000000000; accepted: at most 1000000000"),
    ("trainings.resmlp.evaluate_every", 0, "trainings.resmlp.evaluate_every is 0; accepted: at least 1"),
    ("trainings.resmlp.state_every", 10**12, "trainings.resmlp.state_every is 1000000000000; accepted: at most"),
    ("trainings.resmlp.checkpoints", {"steps": [5]}, "trainings.resmlp.checkpoints.steps has 5; accepted: 1 to 4"),
    ("trainings.resmlp.augmentation", {"flip": True}, "trainings.resmlp.augmentation is for pictures, but samples of"),
    ("trainings.resmlp.optimiser.betas", [0.9], "trainings.resmlp.optimiser.betas"),
    ("trainings.resmlp.optimiser.betas", [0.9, 1], "optimiser.betas[1] is 1; accepted: less than 1"),
    ("trainings.res mlp", {}, "trainings has the name 'res mlp'; accepted: names that match"),
    ("nets.resmlp\n", {"family": "resmlp"}, "nets has the name 'resmlp\\n'; accepted: names that match"),
    ("device", "cpu\n", "device has 'cpu\\n'; accepted: text that matches"),
    ("results", "results\n", "results has 'results\\n'; accepted: text that matches"),
    ("results", "a\0b", "results has 'a\\x00b'; accepted: text that matches"),
    ("results", "figures", "config: results and figures are both 'figures'; accepted: a folder for each"),
    ("datasets", "a\0b", "cannot be read: embedded null byte"),
    ("paths", {"cifar10": ""}, "paths.cifar10 is ''; accepted: a folder or archive"),
    ("paths", {"mnist1d": "/tmp"}, "paths: 'mnist1d' is no data set that is read from a copy; accepted: "),
    ("paths", {"cifar10\n": "/tmp"}, "paths has the name 'cifar10\\n'"),
    ("expansions.0.reference", "final\n", "expansions[0].reference has 'final\\n'; accepted: text that matches"),
    ("expansions.0.only", {"depth": [LONG]}, "expansions[0].only.depth[0] is 1000000000; accepted: at most 10000"),
    ("resources.train_baseline.threads", 0, "resources.train_baseline.threads is 0; accepted: at least 1"),
    ("resources.train_baseline.threads", LONG, "train_baseline.threads is 1000000000; accepted: at most 4096"),
    ("resources.train_baseline.gpu", -1, "resources.train_baseline.gpu is -1; accepted: at least 0"),
    ("resources.train_baseline.mem_mb", "4GB", "resources.train_baseline.mem_mb is '4GB'; accepted: integer"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value", "answer"), CONFIGS, ids=[f"{one}={two!r:.20}" for one, two, _ in CONFIGS])
def test_configs(place: str, value: Any, answer: str) -> None:
    """Refused before the first job."""
    assert answer in configs.refusal(configs.changed(place, value))


INVENTORY: list[tuple[str, Any, str]] = [
    ("seed", 2**32, "digits.seed is 4294967296; accepted: at most 4294967295"),
    ("seed", 1.0, "digits.seed is 1.0; accepted: integer"),
    ("shape", [1, 8, 8192], "digits.shape[2] is 8192; accepted: at most 4096"),
    ("classes", 1, "digits.classes is 1; accepted: at least 2"),
    ("classes", 10**7, "digits.classes is 10000000; accepted: at most 1000000"),
    ("splits", {"train": 10**12}, "digits.splits.train is 1000000000000; accepted: at most 1000000000"),
    ("splits", {"training": 10}, "key 'training' in 'digits.splits' is not known; nearest: 'train'"),
    ("loader", "digit", "digits.loader is 'digit'; accepted: mnist1d, digits, mnist5k, local"),
    ("package", "scikit learn", "digits: package is 'scikit learn'; accepted: an installed package"),
    ("path", "/tmp", "digits: key 'path' is for loader 'local', not 'digits'"),
    ("fresh", {"seed": -1, "samples": 5}, "digits.fresh.seed is -1; accepted: at least 0"),
]


@pytest.mark.parametrize(("key", "value", "answer"), INVENTORY, ids=[f"{one}={two!r:.20}" for one, two, _ in INVENTORY])
def test_inventories(key: str, value: Any, answer: str, tmp_path: Path) -> None:
    """Refused before the first job, and the file is named."""
    inventory = read_yaml(configs.ROOT / "config" / "datasets.yaml")
    inventory["digits"] = {**inventory["digits"], key: value}
    path = tmp_path / "datasets.yaml"
    path.write_text(yaml.safe_dump(inventory), encoding="utf-8")
    line = configs.refusal(configs.changed("datasets", str(path)))
    assert answer in line
    assert str(path) in line


CONFIG_FILES: list[tuple[bytes, str]] = [
    (b"", "holds NoneType; accepted: a mapping of keys"),
    (b"- grid\n", "holds list; accepted: a mapping of keys"),
    (b"grid: [1\n", "not valid YAML"),
    (b"\xff\xfe\x00", "cannot be read"),
    (b"grid: !!python/object/apply:os.getcwd []\n", "not valid YAML"),
    (b"grid: &a [*a]\n", "grid[0]"),
    (b"results: 2026-01-01\n", "results is datetime.date(2026, 1, 1); accepted: string"),
    (b"1: 2\n", "key '1' is not known"),
]


@pytest.mark.parametrize(("content", "answer"), CONFIG_FILES)
def test_config_files(content: bytes, answer: str, tmp_path: Path) -> None:
    """An overlay that is no mapping, or none that YAML can read without running code."""
    path = tmp_path / "overlay.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_files([configs.CONFIG, path])
    assert answer in str(caught.value)


def test_a_folder_of_work_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`snakemake --directory` would look for config, inventory and README somewhere else."""
    check_directory(Path.cwd())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"^snakemake works in {tmp_path}, not in {configs.ROOT}; accepted: no --dir"):
        check_directory(configs.ROOT)


ROWS = np.random.default_rng(0).standard_normal((9, 3))
ARRAYS: dict[str, tuple[np.ndarray, str]] = {
    "all below": (ROWS * 1e-40, "all values, or all their differences, are below 1e-35"),
    "denormal": (np.full((9, 3), 5e-324), "below 1e-35, so that their moments underflow"),
    "differences below": (1e-30 + ROWS * 1e-40, "multiply the rows by a constant"),
    "above": (ROWS * 1e36, "holds NaN, infinity or more than 1e+35"),
    "one NaN": (np.where(np.arange(9)[:, None] == 8, np.nan, ROWS), "row 8 (counted from 0) holds NaN"),
    "three rows": (ROWS[:3], "has 3 rows; unbiased moments need at least 4"),
    "one dimension": (ROWS[0], "has shape [3]; accepted are arrays of two dimensions"),
    "words": (np.full((9, 3), "a"), "holds <U1; accepted are integers and real floating-point numbers"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays(case: str, tmp_path: Path) -> None:
    """Moments that silently underflow to 0 would say that there is no covariance."""
    rows, answer = ARRAYS[case]
    np.save(tmp_path / "rows.npy", rows)
    status, out, err = moments_command.called(tmp_path / "rows.npy")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"jumpboard moments: {tmp_path / 'rows.npy'}: ")
    assert answer in err


def test_small_and_large_rows_that_can_be_measured(tmp_path: Path) -> None:
    """The bounds must not refuse what float64 can hold; a scale changes moments by its powers alone."""

    def measured(rows: np.ndarray) -> dict[str, Any]:
        path = moments_command.saved(tmp_path / "rows.npy", rows)
        return moments_command.strict(moments_command.called(path, "--json")[1])

    plain = measured(ROWS + 2)
    for scale in (2.0**-115, 2.0**113):
        found = measured((ROWS + 2) * scale)
        assert found["T"]["estimate"] / scale**2 / scale**2 == pytest.approx(plain["T"]["estimate"], rel=1e-9)
        assert found["d_align"] == pytest.approx(plain["d_align"], rel=1e-6)
    assert measured(np.zeros((9, 3)))["T"] == {"estimate": 0.0, "low": 0.0, "high": 0.0}


COMMANDS: dict[str, tuple[str, int, str]] = {
    "no command": ("", 2, "jumpboard: the following arguments are required: COMMAND"),
    "unknown command": ("moment rows.npy", 2, "jumpboard: argument COMMAND: invalid choice: 'moment'"),
    "unknown option": ("moments rows.npy --jsno", 2, "jumpboard: unrecognized arguments: --jsno"),
    "no file": ("moments", 2, "jumpboard moments: the following arguments are required: ROWS.npy"),
    "missing file": ("moments none.npy", 2, "jumpboard moments: none.npy: cannot be read: No such file or directory"),
    "folder": ("moments .", 2, "jumpboard moments: .: cannot be read: Is a directory"),
    "pipe": ("moments pipe", 2, "jumpboard moments: pipe: a pipe or device; accepted are .npy files"),
    "device": ("moments /dev/null", 2, "jumpboard moments: /dev/null: a pipe or device; accepted are .npy files"),
    "pipe as test rows": ("moments rows.npy --test pipe", 2, "jumpboard moments: pipe: a pipe or device"),
    "no run to audit": (
        "audit none",
        2,
        "jumpboard audit: none: no such folder; accepted: the results folder",
    ),
    "a file to audit": ("audit rows.npy", 2, "jumpboard audit: rows.npy: no such folder; accepted: the results folder"),
    "a folder of other things": (
        "audit .",
        2,
        "jumpboard audit: records/manifest.json: no such file; accepted",
    ),
    "nothing to compare with": ("audit --against", 2, "jumpboard audit: argument --against: expected one argument"),
    "an array to inspect": ("inspect rows.npy", 2, "jumpboard inspect: rows.npy: not a table or checkpoint file"),
    "a pipe to inspect": (
        "inspect pipe",
        2,
        "jumpboard inspect: pipe: not a regular file; accepted: a .parquet",
    ),
    "no table to fit": ("fit none.csv --x a --y b", 2, "jumpboard fit: none.csv"),
    "full output": ("moments rows.npy > /dev/full", 2, "jumpboard moments: standard output: No space left on device"),
    "full output, JSON": ("moments rows.npy --json > /dev/full", 2, "standard output: No space left on device"),
    "no reader": ("moments rows.npy | true; exit ${PIPESTATUS[0]}", 141, ""),
}


def test_command_lines(tmp_path: Path) -> None:
    """A person sees one line and a script status 2, whatever is wrong with files, options or output."""
    np.save(tmp_path / "rows.npy", ROWS)
    os.mkfifo(tmp_path / "pipe")
    program = f"{sys.executable} -m jumpboard.cli"
    running = {
        case: subprocess.Popen(
            ["bash", "-c", f"{program} {line}"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for case, (line, _, _) in COMMANDS.items()
    }
    for case, process in running.items():
        out, err = process.communicate(timeout=60)
        _, status, answer = COMMANDS[case]
        assert (process.returncode, out) == (status, ""), (case, err)
        assert err.count("\n") == (answer != ""), (case, err)
        assert answer in err, case


ARGUMENTS: list[tuple[list[str], str]] = [
    ([], "the following arguments are required: --root, --params, --code, --outputs"),
    (["--root", "r", "--params", "{", "--code", "c", "--outputs", "a=b"], "argument --params: invalid"),
    (["--root", "r", "--params", "{}", "--code", "c", "--outputs", "a"], "--outputs has 'a'; accepted: NAME=PATH"),
    (["--root", "r", "--params", "{}", "--code", "c", "--outputs", "a=b", "--inputs", "=b"], "--inputs has '=b'"),
    (
        ["--root", "r", "--params", "{}", "--code", "c", "--outputs", "a=b", "--threads", "0"],
        "--threads is 0; accepted",
    ),
    (["--root", "r", "--params", "{}", "--code", "c", "--outputs", "a=b", "--threads", "x"], "argument --threads"),
    (["--root", "r", "--params", "{}", "--code", "c", "--outputs", "a=b", "--thraeds", "1"], "unrecognized arguments"),
]


@pytest.mark.parametrize(("arguments", "answer"), ARGUMENTS)
def test_stage_command_lines(arguments: list[str], answer: str) -> None:
    """Whoever calls a stage by hand sees one line, too."""
    assert answer in refusal("train_baseline", arguments)
