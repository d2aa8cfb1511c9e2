"""One pass over the samples must give, at every site, what the rows written out would give: estimates, limits and pool,
in memory that does not grow with the samples. A planted net, whose gradients have a known law, settles what is true."""

import itertools
import math
import subprocess
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from jumpboard.measure import gradients, sites
from jumpboard.measure.features import FeatureSums, draw_features, hidden_units
from jumpboard.measure.intervals import Estimate, Replicates, jackknife, moment_intervals
from jumpboard.measure.moments import FloatArray, Moments, centred_sums, moments, plug_in
from jumpboard.measure.records import signal_row
from jumpboard.measure.sites import SiteMeasures, batch_size, feature_signal, measure_sites, sites_together
from jumpboard.nets.base import Leaves, Net, Site
from jumpboard.nets.resnet import ResNet
from oracles.gradients import feature_rows, loop_gradients, loop_rows
from oracles.moments import FIELDS, Law
from problems import PROBLEMS, inputs, labels, trained_leaves

NAMED = {problem.name: problem.net() for problem in PROBLEMS}
some_nets = pytest.mark.parametrize(
    "name", ["resmlp_bias", "resmlp_picture", "resnet_batch_strided", "resnet_rms_post"]
)


@dataclass(frozen=True)
class LinearNet(Net):
    """z_l = z_{l-1} W_l', logits = z_L W_head' + b: on inputs of 0 the probabilities p are those of b alone, and the
    gradient at the last site is W_head' (p - onehot y): one atom per label, known in advance at every site."""

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        blocks = {f"blocks.{index}": (self.width, self.width) for index in range(self.depth)}
        return {**blocks, "head.weight": (self.classes, self.width), "head.bias": (self.classes,)}

    def initial_leaves(self, generator: np.random.Generator) -> dict[str, np.ndarray]:
        return {name: generator.standard_normal(shape) for name, shape in self.parameter_shapes().items()}

    def stem(self, leaves: Leaves, x: Tensor, train: bool) -> Tensor:
        return x

    def block(self, leaves: Leaves, index: int, z: Tensor, train: bool) -> Tensor:
        return z @ leaves[f"blocks.{index}"].mT

    def head(self, leaves: Leaves, z: Tensor, train: bool = False) -> Tensor:
        return z @ leaves["head.weight"].mT + leaves["head.bias"].unsqueeze(1)

    def positions(self, z: Tensor, members: int) -> Tensor:
        return z.unsqueeze(2)

    def from_positions(self, p: Tensor, z: Tensor) -> Tensor:
        return p.squeeze(2)

    def sites(self) -> tuple[Site, ...]:
        return tuple(Site(index, self.width, 1, shifted=False) for index in range(self.depth + 1))

    def forward_flops(self) -> int:
        return 0


LINEAR = LinearNet(depth=2, width=3, input_shape=(3,), classes=3)
LABELS = np.array([0.5, 0.3, 0.2])


def linear_leaves() -> dict[str, Tensor]:
    leaves = LINEAR.initial_leaves(np.random.default_rng(11))
    return {name: torch.from_numpy(leaf)[None] for name, leaf in leaves.items()}


def linear_laws(leaves: Leaves) -> list[Law]:
    """The law of zeta at each site, by hand."""
    one = {name: leaf[0].numpy() for name, leaf in leaves.items()}
    p = np.exp(one["head.bias"]) / np.exp(one["head.bias"]).sum()
    atoms = [(p - np.eye(3)) @ one["head.weight"]]
    for index in (1, 0):
        atoms.insert(0, atoms[0] @ one[f"blocks.{index}"])
    return [Law(each, LABELS) for each in atoms]


def samples(net: Net, n: int) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """Leaves, inputs [n, ...] and labels [n] of one member, float64."""
    return trained_leaves(net, 1), inputs(net, 1, n)[0], labels(net, 1, n)[0]


def weights_of(net: Net) -> list[Tensor]:
    return [draw_features(site.units, np.random.default_rng(site.index)).double() for site in net.sites()]


def stacked(values: list[Moments]) -> Moments:
    """Moments of the remaining rows, one element per block."""
    names = [field.name for field in fields(Moments)]
    columns = {name: np.array([getattr(one, name) for one in values], dtype=np.float64) for name in names}
    return replace(values[0], **{name: column for name, column in columns.items() if name != "N"})


def without_each_block(rows: FloatArray, blocks: int) -> tuple[Moments, FloatArray]:
    """Moments without each of the blocks of neighbours, from the rows in memory, and the block sizes."""
    edges = np.linspace(0, len(rows), blocks + 1).astype(int)
    left = [np.delete(rows, np.s_[low:high], axis=0) for low, high in itertools.pairwise(edges)]
    return stacked([moments(one) for one in left]), np.diff(edges).astype(np.float64)


def assert_same_limits(found: Estimate, wanted: Estimate, scale: float) -> None:
    for name in ("estimate", "low", "high"):
        one, other = getattr(found, name), getattr(wanted, name)
        assert (one is None) == (other is None), name
        assert one is None or one == pytest.approx(other, rel=1e-9, abs=1e-9 * scale), name


@some_nets
@pytest.mark.parametrize(("n", "blocks"), [(31, 6), (23, 23)])
def test_moments_and_limits_are_those_of_the_rows(
    name: str, n: int, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number of `moments` and `signal` rests on sums that nobody sees: from a per-sample loop, with positions
    summed, whole and without each block, the same estimates, plug-ins and limits, where batches cut through blocks."""
    monkeypatch.setattr(sites, "BATCH", 10)
    net = NAMED[name]
    leaves, x, y = samples(net, n)
    for rows, site in zip(loop_rows(net, leaves, x, y), measure_sites(net, leaves, x, y, blocks=blocks), strict=True):
        found, biased, intervals = site.moments, site.plug_in, site.intervals
        wanted, plain = moments(rows), plug_in(centred_sums(rows))
        for field in FIELDS:
            assert getattr(found, field) == pytest.approx(getattr(wanted, field), rel=1e-9), field
            assert getattr(biased, field) == pytest.approx(getattr(plain, field), rel=1e-9), field
        left, sizes = without_each_block(rows, blocks)
        for field, limits in moment_intervals(wanted, [Replicates(left, sizes)]).items():
            assert_same_limits(intervals[field], limits, abs(float(getattr(plain, field))))


@some_nets
def test_the_feature_signal_and_its_limits_are_those_of_the_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above for rows of N (4N + 1) entries, which are never made."""
    monkeypatch.setattr(sites, "BATCH", 10)
    net = NAMED[name]
    leaves, x, y = samples(net, 24)
    weights = weights_of(net)
    measured = measure_sites(net, leaves, x, y, weights=weights, blocks=5)
    for one, (z, zeta), site in zip(weights, loop_gradients(net, leaves, x, y), measured, strict=True):
        rows = feature_rows(one, z, zeta)
        left, sizes = without_each_block(rows, 5)
        wanted = jackknife(float(moments(rows).S), [left.S], [sizes])
        scale = float(plug_in(centred_sums(rows)).S)
        phi_mean_square = float(hidden_units(one, z).square().sum((1, 2)).mean()) + z.shape[1]
        assert site.feature is not None
        assert site.feature.plug_in == pytest.approx(scale, rel=1e-10)
        assert site.feature.phi_mean_square == pytest.approx(phi_mean_square, rel=1e-10)
        assert_same_limits(site.feature.interval, wanted, scale)


def flat(measured: list[SiteMeasures]) -> list[float]:
    """All that is said of a net, as numbers; limits that do not exist as NaN."""
    numbers: list[float] = []
    for site in measured:
        assert site.feature is not None
        numbers += [float(getattr(one, name)) for one in (site.moments, site.plug_in) for name in FIELDS]
        for interval in (*site.intervals.values(), site.feature.interval):
            limits = (interval.estimate, interval.low, interval.high)
            numbers += [math.nan if limit is None else limit for limit in limits]
        numbers += [site.feature.plug_in, site.feature.phi_mean_square, *site.rows.ravel().tolist()]
    return numbers


@some_nets
def test_the_batch_size_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are cut for speed, blocks for the limits: a batch of one sample, one that cuts through blocks and
    one that holds them all give the same numbers to rounding. Else a result would depend on the memory of a machine."""
    net = NAMED[name]
    leaves, x, y = samples(net, 23)
    results = []
    for batch in (1, 7, 1000):
        monkeypatch.setattr(sites, "BATCH", batch)
        measured = measure_sites(net, leaves, x, y, weights=weights_of(net), blocks=5, pool=9)
        results.append(flat(measured))
    for other in results[1:]:
        assert other == pytest.approx(results[0], rel=1e-8, abs=1e-14, nan_ok=True)


@some_nets
def test_the_order_of_samples_changes_no_estimate(name: str) -> None:
    """Only limits and pool may depend on who stands where."""
    net = NAMED[name]
    leaves, x, y = samples(net, 20)
    order = torch.from_numpy(np.random.default_rng(1).permutation(20))
    measured, permuted = (
        measure_sites(net, leaves, x[places], y[places], weights=weights_of(net), blocks=4)
        for places in (torch.arange(20), order)
    )
    for one, other in zip(measured, permuted, strict=True):
        for field in FIELDS:
            assert getattr(other.moments, field) == pytest.approx(getattr(one.moments, field), rel=1e-9), field
        signals = [site.feature.interval.estimate for site in (one, other) if site.feature is not None]
        assert signals[0] == pytest.approx(signals[1], rel=1e-9)


def test_scale_free_signals_do_not_know_the_unit_of_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 10 times the loss, S and R are 100 times as large and V and T 10^4 times; what is compared across nets,
    relative to the gradient's own size, stays."""
    net, place = NAMED["resmlp_rms"], {"seed": 0}
    leaves, x, y = samples(net, 24)
    plain, rows = gradients.cross_entropy, []
    for scale in (1, 10):
        monkeypatch.setattr(gradients, "cross_entropy", lambda *given, scale=scale: scale * plain(*given))
        site = measure_sites(net, leaves, x, y, weights=weights_of(net), blocks=6)[1]
        rows.append(signal_row(place, net.sites()[1], net.depth, 7, site))
    degrees = {"signal_bias_sq": 2, "signal_feature_sq": 2, "signal_rms_sq": 2, "phi_rms_sq": 0}
    degrees |= {"bias_scale_free_sq": 0, "feature_scale_free_sq": 0, "signal_feature_sq_low": 2}
    for name, degree in degrees.items():
        assert rows[1][name] == pytest.approx(10**degree * rows[0][name], rel=1e-9), name


def test_the_pool_holds_the_first_rows() -> None:
    """Heat maps and their null come from the pool: rows in order, summed over positions, no more than asked for."""
    for name in ("resmlp_bias", "resnet_rms_post"):
        net = NAMED[name]
        leaves, x, y = samples(net, 17)
        wanted = loop_rows(net, leaves, x, y)
        for pool, kept in ((0, 0), (5, 5), (17, 17), (40, 17)):
            for rows, site in zip(wanted, measure_sites(net, leaves, x, y, blocks=4, pool=pool), strict=True):
                assert len(site.rows) == kept
                if kept:
                    assert site.rows == pytest.approx(rows[:kept], rel=1e-9, abs=1e-14)


def test_fewer_samples_than_blocks() -> None:
    """Each sample is then a block of its own; no block is empty, which would end in a division by 0."""
    net = NAMED["resmlp_rms"]
    leaves, x, y = samples(net, 7)
    for site in measure_sites(net, leaves, x, y, weights=weights_of(net), blocks=20):
        assert all(site.intervals[name].low is not None for name in ("S", "V", "T", "R"))
        assert site.feature is not None
        assert site.feature.interval.low is not None


def test_sites_side_by_side_are_of_one_shape_and_fit_the_cache() -> None:
    """Sites of other shapes cannot be stacked; wide ones gain nothing and would need memory for all sites at once."""
    resnet = ResNet(9, 4, (3, 32, 32), 10)
    assert sites_together(NAMED["resmlp_rms"].sites(), 100) == [tuple(range(NAMED["resmlp_rms"].depth + 1))]
    assert sites_together(resnet.sites(), 16) == [(0, 1, 2, 3), (4, 5, 6), (7, 8, 9)]
    assert sites_together(resnet.sites(), 100) == [(0, 1), (2, 3), (4, 5, 6), (7, 8, 9)]
    assert sites_together(resnet.sites(), 2**20) == [(site,) for site in range(10)]


def test_without_weights_no_feature_signal_is_measured() -> None:
    """It costs as much as all the rest."""
    net = NAMED["resmlp_rms"]
    leaves, x, y = samples(net, 8)
    assert all(site.feature is None for site in measure_sites(net, leaves, x, y))


def test_a_net_whose_gradients_are_known() -> None:
    """All samples of 4 labels of a linear net are enumerated: the expectation of each moment at each site is the one
    of the law that was planted, from the labels down to the first site, and its gradients are the planted atoms."""
    leaves = linear_leaves()
    laws = linear_laws(leaves)
    totals = [dict.fromkeys(FIELDS, 0.0) for _ in laws]
    x = torch.zeros(4, 3, dtype=torch.float64)
    for draw in itertools.product(range(3), repeat=4):
        y = torch.tensor(draw)
        for law, total, site in zip(laws, totals, measure_sites(LINEAR, leaves, x, y, pool=4), strict=True):
            assert site.rows == pytest.approx(law.atoms[list(draw)], rel=1e-12)
            for field in FIELDS:
                total[field] += float(LABELS[list(draw)].prod() * getattr(site.moments, field))
    for law, total in zip(laws, totals, strict=True):
        assert total == pytest.approx(law.moments(), rel=1e-9)


def test_limits_of_a_net_whose_gradients_are_known() -> None:
    """400 data sets of 300 labels: 90 % limits must hold the planted moments in 85 to 95 % of them, at every site. (V
    and T of three atoms are smooth functions of the labels' frequencies.)"""
    leaves, generator = linear_leaves(), np.random.default_rng(0)
    truths = [law.moments() for law in linear_laws(leaves)]
    x, covered = torch.zeros(300, 3, dtype=torch.float64), [dict.fromkeys(("S", "V", "T", "R"), 0) for _ in truths]
    for _ in range(400):
        y = torch.from_numpy(generator.choice(3, 300, p=LABELS))
        for truth, counts, site in zip(truths, covered, measure_sites(LINEAR, leaves, x, y), strict=True):
            for name in counts:
                limits = site.intervals[name]
                counts[name] += limits.low <= truth[name] <= limits.high
    for counts in covered:
        for name, count in counts.items():
            assert 0.85 <= count / 400 <= 0.95, (name, count / 400)


def feature_interval(zeta: Tensor, hidden: Tensor, blocks: int = 20) -> Estimate:
    parts = zip(zeta.tensor_split(blocks), hidden.tensor_split(blocks), strict=True)
    features = [FeatureSums.of(*part) for part in parts]
    _, signal, left = feature_signal(features)
    return jackknife(float(signal), [left], [np.array([one.n for one in features], dtype=np.float64)])


@pytest.mark.parametrize("slope", [0.3, 1.0])
def test_limits_of_the_feature_signal_cover(slope: float) -> None:
    """Whether a block would help is read off these limits. For z ~ N(0, I), zeta = m + c z + noise and a hidden unit w,
    E zeta = m, E relu(w z) = |w|/sqrt(2 pi) and E z relu(w z) = w/2, so that E[zeta phi'] is known exactly; 90 % limits
    from 20 blocks must hold its square in 85 to 95 % of 600 draws."""
    source, units = np.random.default_rng(3), 4
    weights, mean = draw_features(units, source).double(), torch.full((units, 1), 0.2, dtype=torch.float64)
    hidden = mean @ weights.norm(dim=1)[None] / math.sqrt(2 * math.pi) + slope * weights.mT / 2
    truth = float(hidden.square().sum() + mean.square().sum())
    covered = 0
    for _ in range(600):
        z, noise = torch.from_numpy(source.standard_normal((2, 400, 1, units)))
        interval = feature_interval(mean.mT + slope * z + noise, hidden_units(weights, z))
        covered += interval.low <= truth <= interval.high
    assert 0.85 <= covered / 600 <= 0.95, covered / 600


def test_a_feature_signal_that_is_not_there_is_rarely_resolved() -> None:
    """A site where no block could help may pass as one in at most 5 % of nets; gradients that do not depend on z."""
    source, units = np.random.default_rng(4), 4
    weights, found = draw_features(units, source).double(), []
    for _ in range(600):
        z, noise = torch.from_numpy(source.standard_normal((2, 200, 1, units)))
        found.append(feature_interval(noise, hidden_units(weights, z)))
    assert np.mean([interval.resolved for interval in found]) <= 0.05
    assert np.mean([interval.low <= 0 <= interval.high for interval in found]) >= 0.9


def test_large_maps_pass_in_small_batches() -> None:
    """A batch of 1,000 pictures of CIFAR's size would take gigabytes in a ResNet, for nothing: it is slower too."""
    assert batch_size(NAMED["resmlp_rms"]) == sites.BATCH
    assert batch_size(ResNet(9, 16, (3, 32, 32), 10)) == 2**20 // (16 * 32 * 32)
    assert batch_size(ResNet(9, 16, (3, 512, 512), 10)) == 1


MEMORY = """
import sys
from pathlib import Path
import numpy as np, torch
from jumpboard.measure.features import draw_features
from jumpboard.measure.sites import measure_sites
from jumpboard.nets.resmlp import ResMLP
torch.set_num_threads(1)
net = ResMLP(3, 6, (5,), 3)
leaves = {name: torch.from_numpy(leaf)[None] for name, leaf in net.initial_leaves(np.random.default_rng(0)).items()}
weights = [draw_features(6, np.random.default_rng(0)) for _ in range(4)]
for n in map(int, sys.argv[1:]):
    x, y = torch.ones(1, 5).expand(n, 5), torch.zeros(1, dtype=torch.int64).expand(n)
    measure_sites(net, leaves, x, y, weights=weights, pool=100)
    print(1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="elsewhere a child's peak counts its parent's too")
def test_memory_does_not_grow_with_the_samples() -> None:
    """backpack and functorch keep what they make for every sample. Here 10 times as many samples, which share one row
    in memory, may raise the peak by less than the samples themselves would take; rows of 4 sites would take 4 times."""
    few, many = 30_000, 300_000
    done = subprocess.run([sys.executable, "-c", MEMORY, str(few), str(many)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    assert after - before < (many - few) * (5 * 4 + 8), (before, after)
