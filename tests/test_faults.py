"""A disk that is full or read-only, and files that are cut short: one line says what is wrong, nothing half-written is
left, and once the cause is gone the run ends with the bytes of one that nothing happened to."""

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from calls import called, refusal
from conftest import Cell, cells_below
from jumpboard.artefacts.files import REMEDY
from jumpboard.configuration.workflow import open_run
from jumpboard.errors import InputError
from jumpboard.training.resume import SLOTS, ResumeStore
from test_configuration import BASE, ROOT

ROOM = 1 << 20  # bytes of the small disk
TRAINED = {"seeds": [3]}


def expected_of(make_cell: Callable[..., Cell]) -> dict[str, bytes]:
    """Outputs of an undisturbed training."""
    cell = make_cell(root="reference", **TRAINED)
    assert called("train_baseline", cell.arguments())[0] == 0
    return cell.contents()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own; only the superuser may mount one, and not in every container."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "jumpboard-test", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@contextmanager
def filled(disk: Path, left: int) -> Iterator[None]:
    """The disk with `left` bytes free inside the context, and all of them after it."""
    state, ballast = os.statvfs(disk), disk / "ballast"
    with ballast.open("wb") as handle:
        os.posix_fallocate(handle.fileno(), 0, state.f_bavail * state.f_frsize - left)
    yield
    ballast.unlink()


@contextmanager
def limited(size: int) -> Iterator[None]:
    """No file can grow beyond `size` bytes inside the context."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def fails_whole(cell: Cell, expected: dict[str, bytes], reason: str, fault: Any) -> bool:
    """Train under a fault, hold what is left against the rule, and train again without it; whether there was a fault to
    be seen."""
    with fault:
        status, said = called("train_baseline", cell.arguments())
    last = said.splitlines()[-1]
    if status:
        assert status == 2, said
        assert last.startswith(f"error: {cell.root}/"), said
        assert reason in last, said
    for name, path in cell.outputs.items():
        assert not path.exists() or path.read_bytes() == expected[name], name
    assert not list(cell.root.rglob("*.partial"))
    assert called("train_baseline", cell.arguments())[0] == 0
    assert cell.contents() == expected
    assert not cell.store.exists()
    return status != 0


def test_a_full_disk_at_any_moment(
    disk: Path, make_cell: Callable[..., Cell], splits_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk fills up while a state, a table or the checkpoints are written (pytorch PR #170244): for every amount of
    room that is too little, one line names the file, and with more room the run goes on."""
    caplog.set_level("INFO")
    expected, fitting = expected_of(make_cell), 0
    for number, left in enumerate(range(0, ROOM, 1 << 14)):
        cell = cells_below(disk, splits_file)(root=f"cell_{number}", **TRAINED)
        failed = fails_whole(cell, expected, "No space left on device", filled(disk, left))
        shutil.rmtree(cell.root)
        fitting += not failed
        if fitting == 2:
            break
    assert number > 5
    assert any("going on from step" in record.getMessage() for record in caplog.records)


def test_files_that_may_not_grow(make_cell: Callable[..., Cell]) -> None:
    """The same without a disk of its own, so that it is tried everywhere: by the limit on the size of files."""
    expected = expected_of(make_cell)
    sizes = sorted(len(content) for content in expected.values())
    limits = [100, *(size - 1 for size in sizes), sizes[-1] // 2]
    for number, size in enumerate(limits):
        assert fails_whole(make_cell(root=f"cell_{number}", **TRAINED), expected, "File too large", limited(size)), size


def test_a_read_only_disk(disk: Path, make_cell: Callable[..., Cell], splits_file: Path) -> None:
    """Results on a disk that was mounted anew without the right to write, as a cluster does after a fault."""
    cell = cells_below(disk, splits_file)(**TRAINED)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    try:
        assert refusal("train_baseline", cell.arguments()).endswith(": Read-only file system")
        with pytest.raises(InputError, match=f"results is '{disk}/new', which cannot be written: Read-only"):
            open_run(BASE | {"results": f"{disk}/new", "logs": str(disk.parent)}, ROOT)
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    assert called("train_baseline", cell.arguments())[0] == 0
    assert cell.contents() == expected_of(make_cell)


def test_a_folder_without_the_right_to_write(tmp_path: Path, make_cell: Callable[..., Cell]) -> None:
    """Results that belong to a colleague."""
    if os.geteuid() == 0:
        pytest.skip("the superuser may write everywhere")
    cell = make_cell(**TRAINED)
    cell.root.chmod(0o555)
    line = refusal("train_baseline", cell.arguments())
    cell.root.chmod(0o755)
    assert line.endswith(": Permission denied")


@pytest.mark.parametrize("damaged", [1, 2])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_saved_states_that_are_cut_short(
    damaged: int, share: float, make_cell: Callable[..., Cell], caplog: pytest.LogCaptureFixture
) -> None:
    """The newest state of a killed training is cut short, or both are: the previous one is used, or none, it is said,
    and the outputs are the same."""
    cell, save, saved = make_cell(**TRAINED), ResumeStore.save, []

    def dying(store: ResumeStore, *arguments: Any) -> None:
        save(store, *arguments)
        saved.append(arguments[-1])
        if len(saved) == 2:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ResumeStore, "save", dying)
        with pytest.raises(KeyboardInterrupt):
            called("train_baseline", cell.arguments())
    for slot in SLOTS[-damaged:]:
        os.truncate(cell.store / slot, int(share * (cell.store / slot).stat().st_size))
    caplog.set_level("INFO")
    caplog.clear()
    assert called("train_baseline", cell.arguments())[0] == 0
    said = [record.getMessage() for record in caplog.records]
    refused = [f"{cell.store / slot}: saved state is damaged or cut short; not used" for slot in SLOTS[-damaged:]]
    going_on = [f"going on from step {saved[0]}, saved in {cell.store}"] if damaged == 1 else []
    assert said == refused + going_on
    assert cell.contents() == expected_of(make_cell)


def test_a_damaged_file_says_what_to_do(make_cell: Callable[..., Cell]) -> None:
    """Snakemake makes again what is missing, and not what is cut short: the line must say to delete it."""
    cell = make_cell(**TRAINED)
    os.truncate(cell.splits, cell.splits.stat().st_size // 2)
    line = refusal("train_baseline", cell.arguments())
    assert line == f"error: {cell.splits}: not a whole Parquet table written by jumpboard; {REMEDY}"
