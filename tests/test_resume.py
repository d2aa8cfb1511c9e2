"""Killed at any moment and started again, a training ends with the bytes of one that was never interrupted."""

import dataclasses
import fcntl
import hashlib
import json
import logging
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save
from torch import Tensor

from conftest import Cell, cells_below, write_planted
from jumpboard.artefacts.files import replacing
from jumpboard.artefacts.job import parse
from jumpboard.errors import InputError
from jumpboard.nets.base import Leaves, Net
from jumpboard.nets.resmlp import ResMLP
from jumpboard.nets.resnet import ResNet
from jumpboard.stages import train_baseline
from jumpboard.training.engine import Training, TrainingData
from jumpboard.training.interruption import Interrupted
from jumpboard.training.recipe import Optimiser, Recipe
from jumpboard.training.resume import SLOTS, ResumeStore
from jumpboard.training.state import TrainingState
from killing import sweep

SHAPE, CLASSES, STEPS = (1, 5, 4), 3, 9
SEEDS = (2, 6)
RECIPE = Recipe(
    Optimiser("sgd", 0.2, weight_decay=0.01, momentum=0.9), "cosine", 2, batch=8, steps=STEPS, evaluate_every=3,
    state_every=2, clip=1.0, crop=1, flip=True, checkpoint_steps=(4,), losses=(1.3, 1.2, 1.1, 1.0),
)  # fmt: skip
ADAMW = dataclasses.replace(RECIPE, optimiser=Optimiser("adamw", 0.05, weight_decay=0.1))


def planted_data() -> TrainingData:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, *SHAPE, generator=generator)
    y = (x.flatten(1)[:, :CLASSES] * 3).argmax(1)
    return TrainingData(x[:30], y[:30], x[30:], y[30:])


def assert_same(state: TrainingState, other: TrainingState) -> None:
    """Bit by bit, all there is."""
    assert list(state.snapshots) == list(other.snapshots)
    for field in dataclasses.fields(TrainingState):
        assert bits(getattr(state, field.name)) == bits(getattr(other, field.name)), field.name


class Recorder:
    """Notes what a net sees in training passes, and asks for a stop at a pass."""

    def __init__(self, stop_at: int | None = None, number: int = signal.SIGTERM) -> None:
        self.seen: list[Tensor] = []
        self.stop_at, self.number = stop_at, number

    def note(self, x: Tensor) -> None:
        if len(self.seen) == self.stop_at:
            os.kill(os.getpid(), self.number)
        self.seen.append(x.clone())


def watched(net: Net, recorder: Recorder) -> Net:
    """The same net, telling the recorder of each training pass of all members."""

    class Watched(type(net)):  # type: ignore[misc]
        batches_members = True

        def stem(self, leaves: Leaves, x: Tensor, train: bool) -> Tensor:
            if train:
                recorder.note(x)
            return super().stem(leaves, x, train)  # type: ignore[no-any-return]

    return Watched(*(getattr(net, field.name) for field in dataclasses.fields(net)))


def training(net: Net, recipe: Recipe, recorder: Recorder | None = None) -> Training:
    return Training(watched(net, recorder or Recorder()), planted_data(), recipe, SEEDS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kept").touch()
    return tmp_path / ".resume" / "stage" / "cell"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("net", "recipe"),
    [
        pytest.param(ResMLP(2, 5, SHAPE, CLASSES), ADAMW, id="resmlp"),
        pytest.param(ResNet(3, 2, SHAPE, CLASSES), RECIPE, id="resnet"),
    ],
)
def test_stopped_at_any_step(net: Net, recipe: Recipe, number: int, folder: Path) -> None:
    """A resumed run would see the same batches again (nanoGPT #467), forget its momentum, its best net, a crossing or
    part of its curve. Stopped at every step in turn, with the state saved at that step: what the net sees before and
    after is what an uninterrupted one sees, and all of the final state has its bits."""
    whole = Recorder()
    reference = training(net, recipe, whole)
    reference.run()
    assert len(whole.seen) == STEPS
    for stop in range(STEPS - 1):
        first, second = Recorder(stop, number), Recorder()
        with ResumeStore(folder, "d") as store:
            handlers = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
            with pytest.raises(Interrupted) as ended:
                training(net, recipe, first).run(store)
            assert ended.value.code == 128 + number
            assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == handlers
        with ResumeStore(folder, "d") as store:
            resumed = training(net, recipe, second)
            resumed.run(store)
            store.clear()
        assert len(first.seen) == stop + 1
        assert len(first.seen) + len(second.seen) == STEPS
        assert all(map(torch.equal, first.seen + second.seen, whole.seen))
        assert_same(resumed.state, reference.state)


def test_stopped_again_and_again(folder: Path) -> None:
    """On a cluster with short limits a run is stopped at every turn; each life must get one step further."""
    net = ResNet(3, 2, SHAPE, CLASSES)
    reference = training(net, RECIPE)
    reference.run()
    for step in range(1, STEPS):
        with ResumeStore(folder, "d") as store, pytest.raises(Interrupted):
            training(net, RECIPE, Recorder(0)).run(store)
        assert max(saved_steps(folder)) == step
    with ResumeStore(folder, "d") as store:
        last = training(net, RECIPE, Recorder(0))
        last.run(store)
    assert_same(last.state, reference.state)


def test_a_diverged_member_stays_so_after_resume(folder: Path) -> None:
    """A resumed run would bring a diverged seed back to life, or forget at which step it ended."""
    net, recipe = ResMLP(2, 5, SHAPE, CLASSES), dataclasses.replace(ADAMW, crop=0, flip=False)
    data = planted_data()
    order = np.random.default_rng([SEEDS[0], 1, 0]).permutation(30)
    data.x[order[1 * 8]] = torch.nan
    reference = Training(net, data, recipe, SEEDS)
    reference.run()
    assert reference.state.diverged[0] == 1
    for stop in (0, 1, 2):
        with ResumeStore(folder, "d") as store, pytest.raises(Interrupted):
            Training(watched(net, Recorder(stop)), data, recipe, SEEDS).run(store)
        with ResumeStore(folder, "d") as store:
            resumed = Training(net, data, recipe, SEEDS)
            resumed.run(store)
            store.clear()
        assert_same(resumed.state, reference.state)


def test_a_state_comes_back(folder: Path) -> None:
    """The numbers of the best net, a checkpoint or the curve would be those of another moment after a resume."""
    generator = np.random.default_rng(0)

    def noise(*shape: int) -> Tensor:
        return torch.from_numpy(generator.standard_normal(shape).astype(np.float32))

    state = TrainingState(
        flat=noise(2, 7), optimiser={"exp_avg": noise(2, 5), "exp_avg_sq": noise(2, 5)}, step=17,
        smoothed=generator.standard_normal((2, 2)), diverged=np.array([-1, 12]), best=noise(2, 7),
        best_loss=np.array([np.inf, 0.1]), best_step=np.array([0, 8]),
        snapshots={(1, "init"): (0, noise(7)), (0, "loss_0.5"): (9, noise(7)), (0, "init"): (0, noise(7))},
        history=[(0, np.full((4, 2), np.nan)), (8, generator.standard_normal((4, 2)))], tier="statistical",
    )  # fmt: skip
    with ResumeStore(folder, "d") as store:
        store.save(*state.pack(), state.step)
    with ResumeStore(folder, "d") as store:
        found = store.load()
    assert found is not None
    back = TrainingState.unpack(*found, torch.device("cpu"))
    assert list(back.snapshots) == list(state.snapshots)
    for field in dataclasses.fields(TrainingState):
        assert bits(getattr(back, field.name)) == bits(getattr(state, field.name)), field.name


def bits(value: Any) -> Any:
    """A value with its arrays as types, shapes and bytes."""
    if isinstance(value, torch.Tensor | np.ndarray):
        array = np.asarray(value)
        return array.dtype.name, array.shape, array.tobytes()
    if isinstance(value, dict):
        return {key: bits(one) for key, one in value.items()}
    return [bits(one) for one in value] if isinstance(value, list | tuple) else value


# The store


def saved_steps(folder: Path) -> list[int]:
    """Steps of all sound slots, read without the library."""
    steps = []
    for slot in SLOTS:
        if (folder / slot).exists():
            body = (folder / slot).read_bytes()[32:]
            length = int.from_bytes(body[:8], "little")
            steps.append(json.loads(json.loads(body[8 : 8 + length])["__metadata__"]["jumpboard"])["step"])
    return steps


def state_at(step: int) -> tuple[dict[str, Tensor], str]:
    return {"flat": torch.arange(6.0).view(2, 3) + step, "count": torch.tensor([step])}, f"state {step}"


def filled(folder: Path, steps: tuple[int, ...] = (10, 20), digest: str = "d") -> None:
    with ResumeStore(folder, digest) as store:
        for step in steps:
            store.save(*state_at(step), step)


def loaded(folder: Path, digest: str = "d") -> int | None:
    """The step of the state that the store gives, checked against what was saved."""
    with ResumeStore(folder, digest) as store:
        found = store.load()
    if found is None:
        return None
    tensors, text = found
    step = int(tensors["count"])
    expected, expected_text = state_at(step)
    assert text == expected_text
    assert torch.equal(tensors["flat"], expected["flat"])
    return step


def test_slots_take_turns(folder: Path) -> None:
    """With one slot, or the newer one overwritten, a kill during a write would cost the whole run."""
    filled(folder, (1, 2, 3))
    assert sorted(saved_steps(folder)) == [2, 3]
    with ResumeStore(folder, "d") as store:
        store.load()
        store.save(*state_at(4), 4)
    assert sorted(saved_steps(folder)) == [3, 4]
    assert loaded(folder) == 4


@pytest.mark.parametrize("steps", [(10, 20), (10, 20, 30)])
@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped", "flipped digest", "noise", "foreign"])
def test_a_bad_newest_state(
    damage: str, steps: tuple[int, ...], folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that fills up or a kill during a save leaves an archive that cannot be opened (pytorch PR #170244), and
    days are lost; or a damaged or foreign state is trained on. The previous good one is used, and it is said."""
    filled(folder, steps)
    newest = folder / SLOTS[(len(steps) - 1) % 2]
    content = newest.read_bytes()
    middle = len(content) // 2
    foreign = folder.with_name("other")
    filled(foreign, (99,), "another digest")
    newest.write_bytes(
        {
            "truncated": content[:-1],
            "empty": b"",
            "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "flipped digest": bytes([content[0] ^ 1]) + content[1:],
            "noise": random.Random(0).randbytes(len(content)),
            "foreign": (foreign / SLOTS[0]).read_bytes(),
        }[damage]
    )
    caplog.set_level(logging.INFO)
    assert loaded(folder) == steps[-2]
    reason = "saved state of another code, config or data version" if damage == "foreign" else "damaged or cut short"
    refusal, going_on = (record.getMessage() for record in caplog.records)
    assert refusal.startswith(f"{newest}: ")
    assert reason in refusal
    assert going_on == f"going on from step {steps[-2]}, saved in {folder}"

    with ResumeStore(folder, "d") as store:  # and the next save goes over the bad one
        store.load()
        store.save(*state_at(77), 77)
    assert sorted(saved_steps(folder)) == [steps[-2], 77]


def test_nothing_sound_means_a_fresh_start(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After an edit of code or config an old state would be gone on with, and the table would carry the new digest."""
    filled(folder)
    assert loaded(folder, "new digest") is None
    assert len(caplog.records) == 2
    filled(folder, (5,), "new digest")
    assert loaded(folder, "new digest") == 5


def test_a_body_that_is_no_state(folder: Path) -> None:
    """A file with a right checksum over something else ends in a message, not in a traceback."""
    filled(folder)
    for body in (b"", b"\0" * 100, save({"x": torch.zeros(2)}), save({"x": torch.zeros(2)}, {"jumpboard": "{"})):
        (folder / SLOTS[1]).write_bytes(hashlib.sha256(body).digest() + body)
        assert loaded(folder) == 10


def test_a_full_disk_leaves_the_states(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A save that fails would take both states with it, and the message would not say which file."""
    filled(folder)

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    with ResumeStore(folder, "d") as store, monkeypatch.context() as patched:
        store.load()
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left") as failure:
            store.save(*state_at(30), 30)
        assert failure.value.filename == str(folder / SLOTS[0])
    assert sorted(path.name for path in folder.iterdir()) == ["a.state", "b.state", "lock"]
    assert loaded(folder) == 20


def test_cleared_store_leaves_nothing(folder: Path) -> None:
    """A finished run would leave states of gigabytes, empty folders, or what a killed predecessor was writing."""
    filled(folder)
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    (folder / f".a.state.{int(dead.stdout)}.partial").write_bytes(b"half a state")
    sibling = folder.with_name("sibling")
    filled(sibling, (3,))
    with ResumeStore(folder, "d") as store:
        store.clear()
    assert [path.name for path in folder.parent.iterdir()] == ["sibling"]
    with ResumeStore(sibling, "d") as store:
        store.clear()
    root = folder.parents[2]
    assert [path.name for path in root.iterdir()] == ["kept"]


def test_partial_files_of_the_dead_and_the_living(tmp_path: Path) -> None:
    """Half-written files of killed jobs would lie among the tables for ever; and a job would take away the file that
    another one is just writing."""
    target = tmp_path / "samples_1[0].parquet"
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    living = tmp_path / f".{target.name}.{os.getppid()}.partial"
    others = [living, tmp_path / ".samples_1[0].parquet.x.partial", tmp_path / f".b.parquet.{int(dead.stdout)}.partial"]
    for path in (*others, tmp_path / f".{target.name}.{int(dead.stdout)}.partial"):
        path.touch()
    with replacing(target) as temporary:
        temporary.write_text("whole")
    assert sorted(tmp_path.iterdir()) == sorted([target, *others])


def test_a_folder_removed_in_between(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cells that end and begin at the same time would stop each other: a predecessor removes its empty folders
    just as a successor makes them, which `mkdir` reports as either of two errors."""
    real, errors = Path.mkdir, [FileExistsError(17, "File exists"), FileNotFoundError(2, "No such file or directory")]

    def racing(self: Path, *arguments: Any, **options: Any) -> None:
        if self == folder and errors:
            raise errors.pop()
        real(self, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", racing)
    filled(folder)
    assert not errors
    assert loaded(folder) == 20


@pytest.mark.parametrize(
    ("place", "kind"), [("", "file"), ("", "link"), ("cell", "file"), ("cell", "link"), ("cell/lock", "link")]
)
def test_what_stands_in_the_way_ends_in_one_line(place: str, kind: str, tmp_path: Path) -> None:
    """A `.resume` that was a link to a scratch disk now gone made every training wait for ever, without a word."""
    obstacle = tmp_path / ".resume" / place
    obstacle.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        obstacle.touch()
    else:
        obstacle.symlink_to(tmp_path / "gone" / "away")
    with pytest.raises(InputError, match=re.escape(f"{obstacle}: ")), ResumeStore(tmp_path / ".resume" / "cell", "d"):
        pass


@pytest.mark.parametrize("call", [1, 2])
def test_a_lock_file_removed_in_between(call: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, for the lock file: it goes just as its name is looked up, for the first or the second time."""
    real, calls = Path.stat, []

    def racing(self: Path, **options: Any) -> os.stat_result:
        if self == folder / "lock":
            calls.append(self)
            if len(calls) == call:
                os.unlink(self)
        return real(self, **options)

    monkeypatch.setattr(Path, "stat", racing)
    filled(folder)
    monkeypatch.undo()
    assert loaded(folder) == 20
    assert (folder / "lock").exists()


def test_the_lock_is_held_until_the_end(folder: Path) -> None:
    """A successor would train beside an orphan, both writing the same files: it waits, also where the predecessor has
    removed the very lock file that it waits on, and then keeps out a third one."""
    entered, order = threading.Event(), []

    def successor() -> None:
        entered.set()
        with ResumeStore(folder, "d") as store:
            order.append("successor")
            with open(folder / "lock") as lock, pytest.raises(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert store.load() is None
            store.save(*state_at(1), 1)

    with ResumeStore(folder, "d") as store:
        store.save(*state_at(50), 50)
        waiting = threading.Thread(target=successor)
        waiting.start()
        entered.wait()
        time.sleep(0.2)
        order.append("predecessor")
        store.clear()
    waiting.join()
    assert order == ["predecessor", "successor"]
    assert loaded(folder) == 1


# Whole stages, killed


def reference_contents(make_cell: Callable[..., Cell], *arguments: Any, **options: Any) -> dict[str, bytes]:
    """Outputs of an uninterrupted run."""
    cell = make_cell(*arguments, root="reference", **options)
    train_baseline.body(parse("train_baseline", cell.arguments()))
    return cell.contents()


def expected_files(cell: Cell) -> list[str]:
    """What a finished stage leaves, and nothing else."""
    outputs = [path.relative_to(cell.root).as_posix() for path in cell.outputs.values()]
    first = Path(outputs[0])
    return sorted([*outputs, f"records/{first.with_suffix('.json').as_posix()}"])


def test_killed_at_every_change_of_the_file_system(make_cell: Callable[..., Cell]) -> None:
    """Training killed at the wall limit, and days lost or other numbers (snakemake #2407): for every k, a run killed at
    the k-th write, rename or removal, and started again, ends with the bytes of an uninterrupted one, and leaves
    nothing but its outputs."""
    training = {"steps": 5, "state_every": 2, "evaluate_every": 2, "checkpoints": {"steps": [3], "losses": [2.5, 2.0]}}
    expected = reference_contents(make_cell, training=training)
    cells = [make_cell(root=f"killed_{k}", training=training) for k in range(60)]
    limits = [(k, -1) for k in range(1, 61)]
    found, messages = sweep("train_baseline", [cell.root for cell in cells], limits, cells[0].arguments())
    whole = [hashlib.sha256(content).hexdigest() for content in expected.values()]
    assert (found[-1].statuses, found[-1].digests[0]) == ((0, 0), whole), messages
    assert {lives.statuses for lives in found[:-1]} == {(-signal.SIGKILL, 0)}
    left = [lives.digests[0] for lives in found]
    assert all(outputs == whole[: len(outputs)] for outputs in left), "each output is whole or not there"
    assert set(map(len, left)) == {0, 1, 2, 3}
    assert len(found) > 30
    for cell, _ in zip(cells, found, strict=False):
        assert cell.contents() == expected, cell.root
        assert cell.files() == expected_files(cell)


LONG = {
    "steps": 1300, "evaluate_every": 50, "state_every": 20, "optimiser": {"name": "adamw", "lr": 0.003},
    "checkpoints": {"steps": [100, 900], "losses": [1.0, 0.5, 0.2]},
}  # fmt: skip
LARGE = {"depth": 4, "width": 16}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory, splits_file: Path) -> dict[str, bytes]:
    """Outputs of the long cell, three seconds of training."""
    return reference_contents(cells_below(tmp_path_factory.mktemp("long"), splits_file), training=LONG, **LARGE)


def wait_for(condition: Callable[[], Any], process: "subprocess.Popen[str]", pause: float = 0.001) -> None:
    """Until the condition comes true; the process must live until then."""
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(pause)


def newest_step(cell: Cell) -> int:
    return max(saved_steps(cell.store), default=0)


def test_killed_at_random_moments(make_cell: Callable[..., Cell], uninterrupted: dict[str, bytes]) -> None:
    """The same for the stage as the DAG starts it: five kills, at random moments and while a state is written."""
    moments = random.Random(1)
    cell = make_cell(training=LONG, **LARGE)
    for life, step in enumerate(sorted(moments.sample(range(20, 1100), 5))):
        job = cell.start()
        wait_for(lambda step=step: newest_step(cell) >= step, job)
        if life % 2:
            wait_for(lambda step=step: any(cell.store.glob(".*.partial")) or newest_step(cell) > step + 100, job, 0.0)
        else:
            time.sleep(moments.uniform(0, 0.03))
        job.kill()
        job.communicate()
        assert job.returncode == -signal.SIGKILL
    assert not any(path.exists() for path in cell.outputs.values())
    last = cell.start()
    _, messages = last.communicate(timeout=120)
    assert last.returncode == 0, messages
    assert "going on from step " in messages
    assert cell.contents() == uninterrupted
    assert cell.files() == expected_files(cell)


def test_asked_to_stop(make_cell: Callable[..., Cell], uninterrupted: dict[str, bytes]) -> None:
    """A job at its wall limit is asked with SIGTERM first: work since the last state would be lost, or the job end
    like a success. It saves there and then, and its successor goes on from that step."""
    cell = make_cell(training=LONG, **LARGE)
    first = cell.start()
    wait_for(lambda: newest_step(cell) > 0, first)
    second = cell.start()
    known = newest_step(cell)
    first.terminate()
    _, messages = first.communicate(timeout=60)
    assert first.returncode == 143, messages
    step = newest_step(cell)
    assert known < step < LONG["steps"]
    assert not any(path.exists() for path in cell.outputs.values())
    _, messages = second.communicate(timeout=60)
    assert second.returncode == 0, messages
    assert f"going on from step {step}, saved in {cell.store}" in messages
    assert cell.contents() == uninterrupted
    assert cell.files() == expected_files(cell)


def test_two_processes_on_one_cell(make_cell: Callable[..., Cell]) -> None:
    """An orphan of a killed Snakemake and its successor would train the same cell at once and mix their files."""
    cell = make_cell()
    with ResumeStore(cell.store, "the first") as store:
        second = cell.start()
        assert second.stderr is not None
        line = second.stderr.readline()
        assert line == f"{cell.store}: another process trains this cell; waiting for it to end\n"
        time.sleep(0.3)
        assert second.poll() is None
        assert not any(path.exists() for path in cell.outputs.values())
        store.clear()
    _, messages = second.communicate(timeout=60)
    assert second.returncode == 0, messages
    assert cell.files() == expected_files(cell)


def test_states_outlive_the_last_output(make_cell: Callable[..., Cell], monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill between removing the state and writing the last output would cost the whole run."""
    cell = make_cell()
    clear, found = ResumeStore.clear, []

    def checking(store: ResumeStore) -> None:
        found.append(sorted(path.name for path in cell.store.iterdir()))
        found.append([name for name, path in cell.outputs.items() if path.exists()])
        clear(store)

    monkeypatch.setattr(ResumeStore, "clear", checking)
    train_baseline.body(parse("train_baseline", cell.arguments()))
    assert found == [["a.state", "b.state", "lock"], list(cell.outputs)]
    assert not (cell.root / ".resume").exists()


@pytest.mark.parametrize("what", ["parameters", "code", "data", "threads"])
def test_a_state_of_another_run(what: str, make_cell: Callable[..., Cell], caplog: pytest.LogCaptureFixture) -> None:
    """After a change of parameters, code, data or threads, half of a run would be of the old kind and half of the new,
    under the digests of the new."""
    cell = make_cell()
    arguments = cell.arguments(threads=2 if what == "threads" else 1)
    content = cell.splits.read_bytes()
    if what == "parameters":
        clipped = dict(cell.params["training"], clip=0.5)
        arguments = Cell(cell.root, dict(cell.params, training=clipped)).arguments()
    elif what == "code":
        arguments[arguments.index("c0de")] = "0ther"
    elif what == "data":
        write_planted(cell.splits, seed=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ResumeStore, "clear", lambda store: None)
        patched.setattr(torch, "set_num_threads", lambda count: None)
        train_baseline.body(parse("train_baseline", arguments))
    cell.splits.write_bytes(content)
    train_baseline.body(parse("train_baseline", cell.arguments()))
    messages = [record.getMessage() for record in caplog.records]
    assert sum("another code, config or data version; not used" in message for message in messages) == 2
    assert cell.contents() == reference_contents(make_cell)
