"""Checkpoint files: the same bytes for the same content, an ancestry that can be checked, and nothing else accepted."""

import hashlib
import json
import os
import random
import resource
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from conftest import Cell
from jumpboard.artefacts.checkpoints import Member, read_checkpoint_header, read_member, write_checkpoints
from jumpboard.artefacts.files import REMEDY, sha256_of
from jumpboard.artefacts.job import parse, write_json
from jumpboard.artefacts.provenance import Provenance
from jumpboard.errors import InputError
from jumpboard.stages import train_baseline

PROVENANCE = Provenance(
    "c0de", "c0f1", {"splits": "d1", "card": "d2"}, (1, 22), "bytes", 1, "cpu", {"b": "2", "a": "1"}
)
ANCESTOR = "da7a"
SHAPES = {"stem.weight": (3, 4), "stem.gain": (3,), "head": (2, 1, 3, 3), "scale": ()}
STEPS = {"init": 0, "step_0": 0, "loss_1": 30, "loss_0.5": 30, "step_30": 30, "loss_0.1": 41, "final": 60}

Members = dict[tuple[int, str], tuple[int, Member]]


def leaves_of(seed: int, step: int) -> Member:
    """Equal at equal steps of a seed, as in a training."""
    generator = np.random.default_rng([seed, step])
    return {name: generator.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}


def planted_members(steps: dict[str, int] = STEPS, seeds: tuple[int, ...] = (1, 22)) -> Members:
    return {(seed, name): (step, leaves_of(seed, step)) for seed in seeds for name, step in steps.items()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "samples_10.safetensors"
    write_checkpoints(path, planted_members(), ANCESTOR, PROVENANCE)
    return path


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions_are_those_of_any_new_file(umask: int, tmp_path: Path) -> None:
    """A colleague could read the tables of a run and not its checkpoints, or, worse, the other way round."""
    before = os.umask(umask)
    try:
        write_checkpoints(tmp_path / "samples_10.safetensors", planted_members(), ANCESTOR, PROVENANCE)
        write_json(tmp_path / "config.json", {})
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"samples_10.safetensors": 0o666 & ~umask, "config.json": 0o666 & ~umask}


def independent_digest(leaves: Member) -> str:
    text = b"".join(
        f"{name} {leaf.dtype} {leaf.shape}\n".encode() + leaf.tobytes() for name, leaf in sorted(leaves.items())
    )
    return hashlib.sha256(text).hexdigest()


def rewritten(path: Path, change: Callable[[dict[str, np.ndarray]], None]) -> None:
    """The same header over other tensors, in a file that safetensors finds whole."""
    tensors = load_file(path)
    with safe_open(path, framework="numpy") as handle:
        metadata = handle.metadata()
    change(tensors)
    save_file(tensors, path, metadata)


def test_the_same_content_has_the_same_bytes(tmp_path: Path) -> None:
    """Equal runs would leave unequal files (safetensors alone gives 20 files for 20 saves of two metadata keys), and
    everything below them would be computed again. The order in which checkpoints were taken must not matter either."""
    contents = set()
    for save in range(20):
        items = list(planted_members().items())
        random.Random(save).shuffle(items)
        write_checkpoints(tmp_path / "one.safetensors", dict(items), ANCESTOR, PROVENANCE)
        contents.add((tmp_path / "one.safetensors").read_bytes())
    assert len(contents) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["one.safetensors"]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shapes=st.lists(st.lists(st.integers(1, 4), max_size=4).map(tuple), min_size=1, max_size=4),
    kind=st.sampled_from(["float32", "float64"]),
    special=st.sampled_from([1.5, float("nan"), float("-inf"), -0.0]),
    transposed=st.booleans(),
)
def test_members_come_back(
    tmp_path: Path, shapes: list[tuple[int, ...]], kind: str, special: float, transposed: bool
) -> None:
    """A measurement on a checkpoint would be one of another net: shapes, types and bits come back as they were, of the
    member asked for, whatever the memory layout they were written from."""
    members: Members = {}
    for seed in (1, 2):
        leaves = {
            f"leaf.{i}": np.random.default_rng([seed, i]).standard_normal(shape) for i, shape in enumerate(shapes)
        }
        leaves = {name: np.asarray(leaf, dtype=kind) for name, leaf in leaves.items()}
        leaves["leaf.0"][...] = special
        members[seed, "final"] = (seed, {name: leaf.T if transposed else leaf for name, leaf in leaves.items()})
    write_checkpoints(tmp_path / "one.safetensors", members, ANCESTOR, PROVENANCE)
    for (seed, name), (_, leaves) in members.items():
        found = read_member(tmp_path / "one.safetensors", seed, name)
        assert set(found) == set(leaves)
        for leaf in leaves:
            assert (found[leaf].dtype, found[leaf].shape) == (leaves[leaf].dtype, leaves[leaf].shape)
            assert found[leaf].tobytes() == leaves[leaf].tobytes()


def test_seeds_with_a_common_beginning_stay_apart(tmp_path: Path) -> None:
    """Leaves of `seed_22` or of `loss_0.55` would be read into `seed_2` or `loss_0.5`."""
    steps = {"loss_0.5": 3, "loss_0.55": 2}
    write_checkpoints(tmp_path / "one.safetensors", planted_members(steps, (2, 22)), ANCESTOR, PROVENANCE)
    for seed in (2, 22):
        for name, step in steps.items():
            expected = leaves_of(seed, step)
            found = read_member(tmp_path / "one.safetensors", seed, name)
            assert {leaf: value.tolist() for leaf, value in found.items()} == {
                leaf: value.tolist() for leaf, value in expected.items()
            }


def test_header_has_one_key_and_all_facts(path: Path) -> None:
    """An audit of a copied file could not tell code, config, data, seeds, tier or threads."""
    with safe_open(path, framework="numpy") as handle:
        assert list(handle.metadata()) == ["jumpboard"]
        text = handle.metadata()["jumpboard"]
    assert text == json.dumps(json.loads(text), sort_keys=True)
    header = read_checkpoint_header(path)
    records = header.pop("checkpoints")
    assert header == {"schema": "checkpoints", "version": 1, **PROVENANCE.as_json()}
    assert set(records) == {f"seed_{seed}/{name}" for seed in (1, 22) for name in STEPS}
    assert {record["step"] for record in records.values()} == set(STEPS.values())


def test_ancestry(path: Path) -> None:
    """Published checkpoints have been duplicates, swapped, or not descended from their start (pythia #203, #195): each
    record's parent is its seed's last checkpoint of an earlier step, also where several were taken at one step, so that
    no record is its own parent and the chain can be checked from the records alone."""
    records = read_checkpoint_header(path)["checkpoints"]
    chain = {
        "init": ANCESTOR, "step_0": ANCESTOR, "loss_1": "init", "loss_0.5": "init", "step_30": "init",
        "loss_0.1": "loss_1", "final": "loss_0.1",
    }  # fmt: skip
    for seed in (1, 22):
        for name, parent in chain.items():
            record = records[f"seed_{seed}/{name}"]
            assert record["sha256"] == independent_digest(leaves_of(seed, STEPS[name]))
            assert record["parent"] == (parent if parent == ANCESTOR else records[f"seed_{seed}/{parent}"]["sha256"])
            assert record["parent"] != record["sha256"]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 4), min_size=1, max_size=8))
def test_every_chain_ends_at_the_data(tmp_path: Path, steps: dict[str, int]) -> None:
    """Whatever was taken when: from any record, parents lead through strictly earlier steps to the data."""
    write_checkpoints(tmp_path / "one.safetensors", planted_members(steps), ANCESTOR, PROVENANCE)
    records = read_checkpoint_header(tmp_path / "one.safetensors")["checkpoints"]
    for name, record in records.items():
        seed = name.split("/")[0]
        step = record["step"]
        while record["parent"] != ANCESTOR:
            parents = [
                one for key, one in records.items() if key.startswith(f"{seed}/") and one["sha256"] == record["parent"]
            ]
            (parent_step,) = {one["step"] for one in parents}
            between = [
                one for key, one in records.items() if key.startswith(f"{seed}/") and parent_step < one["step"] < step
            ]
            assert parent_step < step
            assert not between
            record, step = parents[0], parent_step
        assert step == min(one["step"] for key, one in records.items() if key.startswith(f"{seed}/"))


def test_a_training_descends_from_its_data(make_cell: Callable[..., Cell]) -> None:
    """The chain of a real cell starts at the very splits file, and levels crossed at one step are siblings."""
    cell = make_cell(training={"checkpoints": {"steps": [1, 6], "losses": [3.0, 2.9]}})
    train_baseline.body(parse("train_baseline", cell.arguments()))
    records = read_checkpoint_header(cell.outputs["checkpoints"])["checkpoints"]
    for seed in (3, 1, 4):
        mine = {name.split("/")[1]: record for name, record in records.items() if name.startswith(f"seed_{seed}/")}
        steps = {name: record["step"] for name, record in mine.items()}
        best = steps.pop("best_validation")
        assert steps == {"init": 0, "step_1": 1, "loss_3": 1, "loss_2.9": 1, "step_6": 6, "final": 12}
        assert best in range(0, 13, 4)
        earlier = [name for name in steps if steps[name] < best]
        assert mine["best_validation"]["parent"] in {mine[name]["sha256"] for name in earlier} | {
            sha256_of(cell.splits)
        }
        assert mine["init"]["parent"] == sha256_of(cell.splits)
        for name in ("step_1", "loss_3", "loss_2.9"):
            assert mine[name]["parent"] == mine["init"]["sha256"]
        assert mine["step_6"]["parent"] == mine["loss_3"]["sha256"]
        assert mine["final"]["parent"] == mine["step_6"]["sha256"]
        for name, record in mine.items():
            assert independent_digest(read_member(cell.outputs["checkpoints"], seed, name)) == record["sha256"]


@pytest.mark.parametrize(
    "change", ["swapped leaves", "swapped seeds", "swapped moments", "altered", "dropped", "added"]
)
def test_tensors_that_are_not_those_of_the_record(path: Path, change: str) -> None:
    """One checkpoint copied over another, or one altered weight, would pass for the net that the tables describe."""

    def apply(tensors: dict[str, np.ndarray]) -> None:
        mine = "seed_1/final/stem.weight"
        others = {"swapped seeds": "seed_22/final/stem.weight", "swapped moments": "seed_1/init/stem.weight"}
        if change in others:
            tensors[mine], tensors[others[change]] = tensors[others[change]], tensors[mine]
        elif change == "swapped leaves":
            tensors[mine] = tensors[mine][::-1].copy()
        elif change == "altered":
            tensors[mine] = np.nextafter(tensors[mine], np.float32(9))
        elif change == "dropped":
            del tensors[mine]
        else:
            tensors["seed_1/final/extra"] = np.zeros(1, dtype=np.float32)

    rewritten(path, apply)
    with pytest.raises(InputError, match=r"the tensors of 'seed_1/final' are not those of its record") as refusal:
        read_member(path, 1, "final")
    assert str(path) in str(refusal.value)
    read_member(path, 1, "loss_1")


def test_one_flipped_byte(path: Path) -> None:
    """A bad disk would change a published net and nobody would know."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    refused = 0
    for seed in (1, 22):
        for name in STEPS:
            try:
                read_member(path, seed, name)
            except InputError:
                refused += 1
    assert refused == 1


def test_missing_member_is_named_with_what_there_is(path: Path) -> None:
    """A typing error in a level must not end in a KeyError without the levels to choose from."""
    with pytest.raises(InputError) as refusal:
        read_member(path, 1, "loss_0.7")
    message = str(refusal.value)
    assert message.startswith(f"{path}: has no checkpoint 'seed_1/loss_0.7'; it has seed_1/final, seed_1/init, ")
    assert "seed_22/step_30" in message
    with pytest.raises(InputError, match="has no checkpoint 'seed_2/final'"):
        read_member(path, 2, "final")


def test_a_full_disk(path: Path) -> None:
    """A checkpoint file of which a part was written would stand where a whole one is expected, or a page of traceback
    would not say which file: planted by a limit on the size of files."""
    content = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) - 1, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as failure:
            write_checkpoints(path, planted_members(), ANCESTOR, PROVENANCE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert failure.value.filename == str(path)
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_files_that_are_no_checkpoints(path: Path, tmp_path: Path) -> None:
    """A file cut short by a copy, a foreign one or none: one line that names it, no traceback."""
    content = path.read_bytes()
    header = int.from_bytes(content[:8], "little")
    for length in (0, 5, 8, 8 + header // 2, 8 + header, len(content) - 1):
        path.write_bytes(content[:length])
        for read in (read_checkpoint_header, lambda path: read_member(path, 1, "final")):
            with pytest.raises(InputError) as refusal:
                read(path)
            assert str(refusal.value) == f"{path}: not a whole checkpoint file written by jumpboard; {REMEDY}"
    save_file({"x": np.zeros(3)}, path)
    with pytest.raises(InputError, match="not a whole checkpoint file"):
        read_member(path, 1, "final")
    with pytest.raises(InputError, match="no such file"):
        read_member(tmp_path / "none.safetensors", 1, "final")
    with pytest.raises(InputError, match="not a whole checkpoint file"):
        read_checkpoint_header(tmp_path)
