"""The stage `expand_chain` and its signal: a power law of chains rests on losses and signals of nets that each descend
from the one before, on samples that no choice has seen."""

import itertools
import math
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor
from torch.nn import functional

from conftest import cells_below, planted_rows
from expanded import RECIPE, Expanded, mean_losses, write_fresh
from jumpboard.artefacts.checkpoints import member_digest, read_checkpoint_header, read_member
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.job import parse
from jumpboard.artefacts.tables import read_header
from jumpboard.expansion import next_signal
from jumpboard.expansion.insertion import insert_at
from jumpboard.expansion.next_signal import NextSignal, next_signals
from jumpboard.measure.features import draw_features
from jumpboard.measure.moments import moments
from jumpboard.nets.base import Leaves, Net, forward
from jumpboard.nets.resmlp import ResMLP
from jumpboard.schemas.chain import CHAIN
from jumpboard.stages import expand_chain, train_baseline
from jumpboard.streams import MEASUREMENT, generator
from jumpboard.training.engine import Training
from oracles.gradients import feature_rows, loop_gradients
from problems import initial_leaves, trained_leaves

SPEC = {
    "reference": "best_validation",
    "splits": {"train": 200, "test": 60, "fresh": 160},
    "steps": {"lowest": 0.001, "highest": 1, "count": 5},
    "site": 1,
    "length": 3,
}
SEEDS, KS, SPLITS = (3, 1, 4), range(4), ("train", "validation", "test", "fresh")
WORSE = {"optimiser": {"name": "sgd", "lr": 1e4}}
DIVERGING = {"optimiser": {"name": "adamw", "lr": 1e30}}
Make = Callable[..., Expanded]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, splits_file: Path) -> Make:
    """trained(spec changes, recipe changes, fresh, **params): a trained cell, not yet expanded; roots never meet."""
    folder = tmp_path_factory.mktemp("chained")
    count = iter(range(1000))

    def make(
        spec: Mapping[str, Any] = {}, training: Mapping[str, Any] = {}, fresh: int = 200, **params: Any
    ) -> Expanded:
        cell = cells_below(folder, splits_file)(root=f"root_{next(count)}", **params)
        train_baseline.body(parse("train_baseline", cell.arguments()))
        one = Expanded(cell, "expand_chain", ("chain",), SPEC | spec, RECIPE | training, keeps_checkpoints=True)
        if fresh:
            write_fresh(one, fresh)
        return one

    return make


@pytest.fixture(scope="module")
def chained(trained: Make) -> Expanded:
    """The standard cell, expanded."""
    one = trained()
    one.run(expand_chain.body)
    return one


def by_seed(one: Expanded) -> dict[int, list[dict[str, Any]]]:
    """Rows by seed, in the order of k."""
    rows = one.rows(CHAIN)
    return {seed: [row for row in rows if row["seed"] == seed] for seed in {row["seed"] for row in rows}}


def nets(one: Expanded, site: int) -> list[Net]:
    """The nets of a chain by k."""
    net, leaves = one.net(), one.reference().leaves
    found = [net]
    for _ in range(one.spec["length"]):
        net, leaves = insert_at(net, leaves, [site] * len(SEEDS), SEEDS)
        found.append(net)
    return found


def member(one: Expanded, seed: int, k: int, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    stored = read_member(one.outputs["checkpoints"], seed, f"k_{k}")
    return {name: torch.from_numpy(leaf)[None].to(dtype) for name, leaf in stored.items()}


def test_every_seed_and_k_has_its_row(chained: Expanded) -> None:
    """A missing link shifts all that follow; every block has 4N x N and N x (4N + 1) weights."""
    rows = by_seed(chained)
    assert set(rows) == set(SEEDS)
    for chain in rows.values():
        assert [row["k"] for row in chain] == [*KS]
        assert [row["steps"] for row in chain] == [12 * k for k in KS]
        assert [row["parameters"] for row in chain] == [
            chained.net().parameter_count() + k * (32 * 8 + 8 * 33) for k in KS
        ]
        assert {(row["site"], row["insert_form"], row["status"]) for row in chain} == {(2, "normed", "trained")}
        assert [row["branch"] for row in chain] == ["none", "trained", "trained", "trained"]


def test_losses_are_those_of_the_stored_nets(chained: Expanded) -> None:
    """Each k's row, on every split, of the net in the file under that name; k = 0 is the reference itself."""
    reference, rows = chained.reference(), by_seed(chained)
    for split in SPLITS:
        x, y = chained.samples(split)
        wanted = mean_losses(chained.net(), reference.leaves, x, y)
        for place, seed in enumerate(reference.seeds):
            assert rows[seed][0][f"net_{split}_loss"] == pytest.approx(wanted[place], rel=1e-6)
        for k, net in enumerate(nets(chained, 2)):
            loss = mean_losses(net, member(chained, 1, k), x, y)[0]
            assert rows[1][k][f"net_{split}_loss"] == pytest.approx(loss, rel=1e-6), (split, k)


def test_every_net_descends_from_the_one_before(chained: Expanded) -> None:
    """Digest by digest down to the reference; only the new block has changed."""
    records = read_checkpoint_header(chained.outputs["checkpoints"])["checkpoints"]
    assert set(records) == {f"seed_{seed}/k_{k}" for seed in SEEDS for k in KS}
    origin = read_checkpoint_header(chained.cell.outputs["checkpoints"])["checkpoints"]
    for seed in SEEDS:
        parent = origin[f"seed_{seed}/best_validation"]["sha256"]
        assert records[f"seed_{seed}/k_0"]["sha256"] == parent
        before: Mapping[str, Any] = {}
        for k in KS:
            record, leaves = records[f"seed_{seed}/k_{k}"], read_member(chained.outputs["checkpoints"], seed, f"k_{k}")
            assert (record["parent"], record["step"]) == (parent, k)
            assert member_digest(leaves) == record["sha256"]
            assert all(np.array_equal(leaves[name], leaf) for name, leaf in before.items())
            new = set(leaves) - set(before) if k else set()
            assert new == ({f"insert.{k - 1}.{leaf}" for leaf in ("w1", "a", "site")} if k else set())
            assert all(leaves[name].any() for name in new)
            parent, before = record["sha256"], leaves


@pytest.mark.parametrize(
    ("training", "branch", "status"),
    [({}, "trained", "trained"), (WORSE, "jumpboard", "trained"), (DIVERGING, "jumpboard", "diverged")],
    ids=["good", "worse", "diverging"],
)
def test_training_loss_never_rises(trained: Make, training: Any, branch: str, status: str) -> None:
    """The fallback holds whatever training does: the jumpboard stays, and it is no worse than the net before."""
    one = trained(training=training)
    one.run(expand_chain.body)
    for chain in by_seed(one).values():
        losses = [row["net_train_loss"] for row in chain]
        assert all(math.isfinite(row[f"net_{split}_loss"]) for row in chain for split in SPLITS)
        assert all(after < before for before, after in itertools.pairwise(losses))
        assert {(row["branch"], row["status"]) for row in chain[1:]} == {(branch, status)}
        assert (chain[-1]["steps"] == 36) == (status == "trained")


def test_where_no_step_is_better_none_is_taken(trained: Make) -> None:
    """Steps that are too long, along a direction of few samples: nearly always the net stays what it was, and it never
    gets worse."""
    spec = {"splits": {**SPEC["splits"], "train": 20}, "steps": {"lowest": 50, "highest": 100, "count": 2}}
    one = trained(spec=spec, training=WORSE)
    one.run(expand_chain.body)
    stayed = 0
    for seed, chain in by_seed(one).items():
        for k, (before, after) in enumerate(itertools.pairwise(row["net_train_loss"] for row in chain)):
            taken = bool(member(one, seed, 3)[f"insert.{k}.a"].any())
            assert after < before if taken else after == pytest.approx(before, rel=1e-6)
            stayed += not taken
    assert stayed >= 6


def test_training_improves_on_the_jumpboard(chained: Expanded) -> None:
    """With 0 steps every link is its jumpboard, which is better than the net before and worse than what training makes
    of it: else the fallback would hide that nothing is trained."""
    without = chained.copied("no_steps")
    other = Expanded(without.cell, without.rule, without.tables, without.spec, RECIPE | {"steps": 0}, True)
    other.run(expand_chain.body)
    jumped, full = by_seed(other), by_seed(chained)
    for seed in SEEDS:
        assert full[seed][1]["net_train_loss"] < jumped[seed][1]["net_train_loss"] < full[seed][0]["net_train_loss"]
        assert [row["steps"] for row in jumped[seed]] == [0, 0, 0, 0]
    records = read_checkpoint_header(other.outputs["checkpoints"])["checkpoints"]
    parents = [records[f"seed_3/k_{k}"]["parent"] for k in KS]
    assert parents[1:] == [records[f"seed_3/k_{k}"]["sha256"] for k in range(3)]


# The signal


def plus(net: Net, z: Tensor, zeta: Tensor) -> Tensor:
    """J_Norm(z)' zeta of RMSNorm, sample by sample."""
    out = torch.empty_like(zeta)
    for i in range(len(z)):
        jacobian = torch.autograd.functional.jacobian(
            lambda one: functional.rms_norm(one, (net.width,), eps=1e-6), z[i, 0]
        )
        out[i, 0] = zeta[i, 0] @ jacobian
    return out


def written_out(net: Net, leaves: Leaves, site: int, weights: Tensor, x: Tensor, y: Tensor) -> np.ndarray:
    """Rows [n, N (4N + 1)] of one member, by a loop over samples."""
    z, zeta = loop_gradients(net, leaves, x, y)[site]
    return feature_rows(weights, z, plus(net, z, zeta))


def jackknifed(rows: np.ndarray, blocks: int) -> tuple[float, float, float]:
    """The U-statistic with 90 % limits from equal blocks of neighbours."""
    estimate, parts = float(moments(rows).S), np.split(rows, blocks)
    left = [float(moments(np.concatenate(parts[:j] + parts[j + 1 :])).S) for j in range(blocks)]
    error = math.sqrt((blocks - 1) ** 2 / blocks * np.var(left, ddof=1))
    half = stats.t.ppf(0.95, blocks - 1) * error
    return estimate, estimate - half, estimate + half


@pytest.mark.parametrize("k", [0, 2])
def test_the_signal_is_that_of_the_fresh_rows(chained: Expanded, k: int) -> None:
    """Of the stored net at the last site, where zeta_+ is not zeta, behind all blocks inserted so far, with the random
    features of the measured table; 160 of the 200 fresh samples."""
    row = by_seed(chained)[4][k]
    weights = draw_features(8, generator(4, MEASUREMENT, 2)).double()
    x, y = chained.samples("fresh")
    rows = written_out(nets(chained, 2)[k], member(chained, 4, k, torch.float64), 2, weights, x.double(), y)
    estimate, low, high = jackknifed(rows, 20)
    assert (row["signal_n"], row["signal_split"]) == (160, "fresh")
    assert row["signal_feature_sq"] == pytest.approx(estimate, rel=1e-4)
    assert row["signal_feature_sq_low"] == pytest.approx(low, rel=1e-3, abs=1e-4 * estimate)
    assert row["signal_feature_sq_high"] == pytest.approx(high, rel=1e-3)
    assert row["signal_feature_sq_plugin"] == pytest.approx(float((rows.mean(axis=0) ** 2).sum()), rel=1e-4)
    error = (high - low) / 2 / stats.t.ppf(0.95, 19)
    assert row["signal_z"] == pytest.approx(estimate / error, rel=1e-3)


def test_without_fresh_samples_the_test_samples_are_used(trained: Make) -> None:
    one = trained(spec={"splits": {"train": 200, "test": 40}, "length": 1}, fresh=0, seeds=[3])
    one.run(expand_chain.body)
    rows = one.rows(CHAIN)
    assert {(row["signal_n"], row["signal_split"], row["net_fresh_loss"]) for row in rows} == {(40, "test", None)}
    assert rows[0]["net_test_loss"] == pytest.approx(
        mean_losses(one.net(), one.reference().leaves, *one.samples("test"))[0], rel=1e-6
    )


def planted(n: int) -> tuple[ResMLP, dict[str, Tensor], Tensor, Tensor, Tensor]:
    """Two members and samples: the first net is not trained and has a signal, for the second the labels are its own
    words, so that it has none."""
    rows = planted_rows(n, 5)
    x = torch.from_numpy(rows.x).double()
    net = ResMLP(2, 6, tuple(x.shape[1:]), 3)
    plain, own = initial_leaves(net, 1), trained_leaves(net, 1, seed=1)
    own["head.weight"] = 3 * own["head.weight"]
    share = forward(net, own, x[None])[0].softmax(-1)
    said = torch.multinomial(share, 1, generator=torch.Generator().manual_seed(2))[:, 0]
    weights = torch.stack([draw_features(6, np.random.default_rng([7, g])) for g in range(2)]).double()
    leaves = {name: torch.cat([plain[name], own[name]]) for name in plain}
    return net, leaves, weights, x, torch.stack([torch.from_numpy(rows.y), said])


def grown(net: Net, leaves: Leaves, weights: Tensor, x: Tensor, y: Tensor, **options: Any) -> NextSignal:
    """Of one member."""
    (found,) = next_signals(net, leaves, 1, weights, x, y, **options)
    return found


def only(leaves: Leaves, one: int) -> dict[str, Tensor]:
    return {name: leaf[one : one + 1] for name, leaf in leaves.items()}


def test_n_grows_until_the_signal_stands_out() -> None:
    """A strong signal needs the first samples only; where there is none, all are used. The stop depends on z alone: at
    each threshold, n is the first of 40, 80, 160, ... whose z is above it."""
    net, leaves, weights, x, y = planted(700)
    strong = grown(net, only(leaves, 0), weights[:1], x, y[0], first=200)
    assert (strong.n, strong.z > 5) == (200, True)
    silent = grown(net, only(leaves, 1), weights[1:], x, y[1], first=40)
    assert (silent.n, silent.z < 3) == (700, True)
    course = {}
    for n in (40, 80, 160, 320, 640, 700):
        course[n] = grown(net, only(leaves, 0), weights[:1], x[:n], y[0, :n], first=40, enough=math.inf)
        assert course[n].n == n
    assert course[640].z > 2 * course[40].z
    for enough in (course[40].z * 1.01, course[160].z * 1.01, course[640].z * 0.99, course[700].z * 2):
        found = grown(net, only(leaves, 0), weights[:1], x, y[0], first=40, enough=enough)
        assert found.n == next((n for n, one in course.items() if one.z > enough), 700)
        assert found == course[found.n]


@pytest.mark.parametrize("n", [40, 80, 320])
def test_a_grown_signal_is_that_of_all_its_rows(n: int) -> None:
    """Sums that are kept and joined as n grows give what all rows at once give, in 20 blocks of neighbours."""
    net, leaves, weights, x, y = planted(n)
    found = grown(net, only(leaves, 0), weights[:1], x, y[0], first=40, enough=math.inf)
    estimate, low, high = jackknifed(written_out(net, only(leaves, 0), 1, weights[0], x, y[0]), 20)
    assert found.interval.estimate == pytest.approx(estimate, rel=1e-8)
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high), rel=1e-6)


def test_no_sample_is_passed_twice_and_members_stop_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are kept: each member sees the first n samples once, in batches that end within blocks, and one that stands
    out is passed no further."""
    net, leaves, weights, x, y = planted(700)
    seen: list[tuple[int, int]] = []
    real = next_signal.site_gradients

    def noting(net: Net, leaves: Leaves, x: Tensor, y: Tensor) -> Any:
        seen.append((len(x), x.shape[1]))
        return real(net, leaves, x, y)

    monkeypatch.setattr(next_signal, "site_gradients", noting)
    monkeypatch.setattr(next_signal, "batch_size", lambda _: 14)
    together = next_signals(net, leaves, 1, weights, x, y[1], first=40, enough=2.5)
    alone = [grown(net, only(leaves, g), weights[g : g + 1], x, y[1], first=40, enough=2.5) for g in range(2)]
    assert [one.n for one in together] == [one.n for one in alone]
    assert together[0].n < together[1].n == 700
    for one, other in zip(together, alone, strict=True):
        assert one.interval.estimate == pytest.approx(other.interval.estimate, rel=1e-9)
        assert one.z == pytest.approx(other.z, rel=1e-6)
    passed = sum(members * count for members, count in seen)
    assert passed == 2 * (together[0].n + 700)
    assert max(members * count for members, count in seen) <= 14


def test_a_signal_that_is_not_there_rarely_stands_out() -> None:
    """Looked at after every doubling, z of nets that already are the truth passes 5 in none of 40 cases, and the mean
    of the estimates is 0."""
    estimates = []
    net = ResMLP(2, 4, (5,), 3)
    for seed in range(40):
        leaves, draws = trained_leaves(net, 1, seed), torch.Generator().manual_seed(seed)
        x = torch.randn(320, 5, generator=draws, dtype=torch.float64)
        y = torch.multinomial(forward(net, leaves, x[None])[0].softmax(-1), 1, generator=draws)[:, 0]
        weights = draw_features(4, np.random.default_rng([8, seed])).double()[None]
        found = grown(net, leaves, weights, x, y, first=40)
        assert found.n == 320
        estimates.append(found.interval.estimate)
    assert abs(np.mean(estimates)) < 3 * np.std(estimates) / math.sqrt(40)


def test_a_net_without_any_gradient_has_no_signal() -> None:
    """Nothing varies: z is 0, not a division by 0."""
    net, leaves, weights, x, y = planted(60)
    leaves["head.weight"] = 0 * leaves["head.weight"]
    found = grown(net, only(leaves, 0), weights[:1], x, y[0], first=40)
    assert (found.n, found.z, found.interval.estimate) == (60, 0.0, 0.0)


# Killed, and started again

DYING = """
import os, signal, sys
from jumpboard.artefacts.job import run_stage
from jumpboard.stages import expand_chain
real, calls, limit = os.replace, 0, int(sys.argv[1])
def dying(*places):
    global calls
    calls += 1
    if calls == limit:
        os.kill(os.getpid(), signal.SIGKILL)
    real(*places)
os.replace = dying
sys.argv = ["expand_chain", *sys.argv[2:]]
run_stage("expand_chain", expand_chain.body)
"""


def test_killed_within_the_chain(chained: Expanded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the second training, after its first state, and started again: no training is done twice, and the bytes
    are those of a run that was never interrupted. Nothing but the outputs is left."""
    other = chained.copied("killed")
    command = [sys.executable, "-c", DYING, "5", *other.arguments()]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -signal.SIGKILL
    assert not any(path.exists() for path in other.outputs.values())
    assert sorted(path.name for path in other.states.iterdir()) == ["k_1", "k_2"]
    steps: list[int] = []
    step = Training.step

    def counted(training: Training) -> None:
        steps.append(training.net.parameter_count())
        step(training)

    monkeypatch.setattr(Training, "step", counted)
    other.run(expand_chain.body)
    sizes = [row["parameters"] for row in by_seed(chained)[3]]
    assert [steps.count(size) for size in sizes] == [0, 0, 7, 12]
    assert other.contents() == chained.contents()
    assert not other.states.exists()


def test_headers_name_what_the_files_were_made_from(chained: Expanded) -> None:
    """The audit follows this chain from a claim to the data."""
    files = (chained.cell.splits, chained.fresh, chained.cell.outputs["checkpoints"])
    wanted = {path.relative_to(chained.cell.root).as_posix(): sha256_of(path) for path in files}
    for header in (read_header(chained.outputs["chain"]), read_checkpoint_header(chained.outputs["checkpoints"])):
        assert header["parents"] == wanted
        assert header["seeds"] == [3, 1, 4]
        assert (header["tier"], header["device"], header["threads"]) == ("bytes", "cpu", 1)


def test_a_chain_of_convolutions(trained: Make) -> None:
    """Blocks at every position of a map, behind BatchNorm: bare, and the running statistics stay."""
    one = trained({"site": 0.5, "length": 2}, arch="resnet", net={"family": "resnet"}, depth=3, width=2)
    one.run(expand_chain.body)
    for chain in by_seed(one).values():
        assert {(row["site"], row["insert_form"]) for row in chain} == {(2, "bare")}
        losses = [row["net_train_loss"] for row in chain]
        assert losses[2] < losses[1] < losses[0]
        assert all(math.isfinite(row["signal_feature_sq"]) for row in chain)


def test_without_a_reference_the_table_is_empty_and_there(trained: Make) -> None:
    """A cell all of whose seeds diverged must not stop the figures of the others."""
    one = trained(spec={"reference": "step_99"}, seeds=[3])
    one.run(expand_chain.body)
    assert by_seed(one) == {}
    assert read_checkpoint_header(one.outputs["checkpoints"])["checkpoints"] == {}
