"""Nets: the numbers of plain torch, members that do not talk, cuts that change nothing, and what the theory needs."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from jumpboard.errors import InputError
from jumpboard.nets.base import Net, forward, run_from, run_to
from jumpboard.nets.norms import EPS, rms_norm
from jumpboard.nets.registry import build_net
from jumpboard.nets.resmlp import ResMLP
from jumpboard.nets.resnet import ResNet, groups
from oracles.plain_resmlp import plain_logits
from oracles.plain_resnet import own_name, plain_resnet
from problems import CLASSES, PROBLEMS, initial_leaves, inputs, labels, trained_leaves

every_net = pytest.mark.parametrize("net", [pytest.param(problem.net(), id=problem.name) for problem in PROBLEMS])
MLPS = [pytest.param(problem.net(), id=problem.name) for problem in PROBLEMS if problem.spec["family"] == "resmlp"]
RESNETS = [pytest.param(problem.net(), id=problem.name) for problem in PROBLEMS if problem.spec["family"] == "resnet"]
RESNET20 = ResNet(9, 16, (3, 32, 32), 10)


def of_member(leaves: dict[str, Tensor], member: int) -> dict[str, Tensor]:
    return {name: leaf[member : member + 1].clone() for name, leaf in leaves.items()}


def stream_and_gradients(net: Net, leaves: dict[str, Tensor], x: Tensor, y: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Each site's z and zeta as rows [G B, units x positions]."""
    streams: list[Tensor] = []

    def tap(site: int, z: Tensor) -> Tensor:
        streams.append(z if site else z.requires_grad_())
        return streams[-1]

    loss = functional.cross_entropy(forward(net, leaves, x, tap=tap).flatten(0, 1), y.flatten(), reduction="sum")
    pairs = zip(streams, torch.autograd.grad(loss, streams), strict=True)
    return [(z.reshape(y.numel(), -1), zeta.reshape(y.numel(), -1)) for z, zeta in pairs]


@every_net
def test_parameter_count(net: Net) -> None:
    """Parameter-matched comparisons and every `parameters` column would be wrong."""
    leaves = net.initial_leaves(np.random.default_rng(0))
    assert list(leaves) == [*net.parameter_shapes(), *net.buffer_shapes()]
    assert all(leaf.dtype == np.float32 for leaf in leaves.values())
    assert {name: leaf.shape for name, leaf in leaves.items()} == net.parameter_shapes() | net.buffer_shapes()
    assert net.parameter_count() == sum(leaves[name].size for name in net.parameter_shapes())


@pytest.mark.parametrize(("depth", "width"), [(1, 8), (4, 16), (16, 64)])
def test_parameter_count_of_the_reference_net(depth: int, width: int) -> None:
    """Counted by hand: W_in of 40 inputs, two square matrices a block, a head of 10 classes, and nothing else."""
    assert ResMLP(depth, width, (40,), 10).parameter_count() == 40 * width + 2 * depth * width**2 + 10 * width


@pytest.mark.parametrize(("layers", "millions"), [(20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85), (110, 1.7)])
def test_published_sizes(layers: int, millions: float) -> None:
    """Our ResNet-20 ... 110 would not be the nets of He et al. (2015), table 6."""
    net = ResNet((layers - 2) // 2, 16, (3, 32, 32), 10)
    assert net.parameter_count() == pytest.approx(1e6 * millions, rel=0.02)
    if layers == 20:
        assert net.parameter_count() == 269_722
        assert net.forward_flops() / 2 == pytest.approx(40.8e6, rel=0.01)


@every_net
def test_forward_flops(net: Net) -> None:
    """Loss-against-compute curves would have a wrong axis."""
    with FlopCounterMode(display=False) as counter:
        forward(net, initial_leaves(net, members=2), inputs(net, members=2, batch=3))
    assert net.forward_flops() * 6 == counter.get_total_flops()


@pytest.mark.parametrize("net", MLPS)
def test_resmlp_is_the_plain_net(net: ResMLP) -> None:
    """The net that is trained would not be the one that the module's formula promises."""
    leaves, x = trained_leaves(net, members=3), inputs(net, members=3, batch=4)
    logits = forward(net, leaves, x)
    for member in range(3):
        expected = plain_logits(net, {name: leaf[member] for name, leaf in leaves.items()}, x[member])
        torch.testing.assert_close(logits[member], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("net", [*RESNETS, pytest.param(RESNET20, id="resnet20")])
@pytest.mark.parametrize("members", [1, 2])
def test_resnet_is_the_plain_net(net: ResNet, members: int) -> None:
    """Results for `resnet` would not be about the ResNet that everybody means: other logits or gradients in train or in
    eval mode, or other running statistics. The leaves are views of one long vector, as in the engine."""
    own = trained_leaves(net, members)
    flat = torch.cat([leaf.flatten(1) for leaf in own.values()], dim=1)
    parts = flat.split([leaf[0].numel() for leaf in own.values()], dim=1)
    leaves = {name: part.view(leaf.shape) for (name, leaf), part in zip(own.items(), parts, strict=True)}
    trained = {name: leaves[name].requires_grad_() for name in net.parameter_shapes()}
    x = inputs(net, members, batch=4)
    modules = [plain_resnet(net, {name: leaf[member] for name, leaf in own.items()}) for member in range(members)]
    for train in (True, False):
        logits = forward(net, leaves, x, train)
        gradients = torch.autograd.grad(logits.square().sum(), list(trained.values()))
        for member, module in enumerate(modules):
            expected = module.train(train)(x[member])
            torch.testing.assert_close(logits[member], expected, rtol=1e-9, atol=1e-9)
            places = [module.get_parameter(own_name(name)) for name in trained]
            for gradient, known in zip(gradients, torch.autograd.grad(expected.square().sum(), places), strict=True):
                torch.testing.assert_close(gradient[member], known, rtol=1e-9, atol=1e-9)
    for member, module in enumerate(modules):
        for name in net.buffer_shapes():
            torch.testing.assert_close(leaves[name][member], module.get_buffer(own_name(name)), rtol=1e-9, atol=1e-9)


@every_net
@pytest.mark.parametrize("train", [False, True])
def test_members_do_not_talk(net: Net, train: bool) -> None:
    """Seeds trained together would not be independent, and every interval over seeds would be a fiction."""
    leaves, x = trained_leaves(net, members=3), inputs(net, members=3, batch=4)
    together = {name: leaf.clone() for name, leaf in leaves.items()}
    logits = forward(net, together, x, train)
    for member in range(3):
        alone = of_member(leaves, member)
        expected = forward(net, alone, x[member : member + 1], train)
        torch.testing.assert_close(logits[member], expected[0], rtol=1e-10, atol=1e-10)
        for name in net.buffer_shapes():
            torch.testing.assert_close(together[name][member], alone[name][0], rtol=1e-10, atol=1e-10)


@every_net
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_diverged_member_harms_no_other(net: Net, dtype: torch.dtype) -> None:
    """One diverged seed would spoil its fellows, in the forward pass or through its gradients."""
    healthy, x = trained_leaves(net, members=3, dtype=dtype), inputs(net, members=3, batch=4, dtype=dtype)
    broken = {name: leaf.clone() for name, leaf in healthy.items()}
    for name in net.parameter_shapes():
        broken[name][1] = math.nan
    results = []
    for leaves in (healthy, broken):
        trained = {name: leaves[name].requires_grad_() for name in net.parameter_shapes()}
        logits = forward(net, leaves, x, train=True)
        loss = functional.cross_entropy(logits.flatten(0, 1), labels(net, 3, 4).flatten(), reduction="none")
        gradients = torch.autograd.grad(loss.view(3, 4).mean(1).sum(), list(trained.values()))
        results.append([logits, *gradients])
    for before, after in zip(*results, strict=True):
        torch.testing.assert_close(after[[0, 2]], before[[0, 2]], rtol=1e-5, atol=1e-6)
        assert after[1].isnan().any()


@every_net
@pytest.mark.parametrize("train", [False, True])
def test_cut_at_every_site(net: Net, train: bool) -> None:
    """Gradients would be measured, and blocks inserted, at another place than the site's name says."""
    leaves, x = trained_leaves(net, members=2), inputs(net, members=2, batch=4)
    whole = forward(net, leaves, x, train)
    sites = net.sites()
    assert [site.index for site in sites] == list(range(net.depth + 1))
    for site in sites:
        z = run_to(net, leaves, x, site.index, train)
        assert z.numel() == 2 * 4 * site.units * site.positions
        if z.dim() == 4:
            assert (z.shape[1], z.shape[2] * z.shape[3]) == (2 * site.units, site.positions)
        passed: list[int] = []

        def tap(index: int, stream: Tensor, passed: list[int] = passed) -> Tensor:
            passed.append(index)
            return stream

        torch.testing.assert_close(run_from(net, leaves, z, site.index, train, tap), whole, rtol=0, atol=0)
        assert passed == list(range(site.index, net.depth + 1))
        changed = run_from(net, leaves, z, site.index, tap=lambda _, stream: torch.zeros_like(stream))
        torch.testing.assert_close(changed, net.head(leaves, torch.zeros_like(run_to(net, leaves, x, net.depth))))


@every_net
def test_positions_have_an_inverse(net: Net) -> None:
    """A block that is inserted at a site works on positions: what it adds would land on other units or places."""
    leaves, x = trained_leaves(net, members=2), inputs(net, members=2, batch=4)
    for site in net.sites():
        z = run_to(net, leaves, x, site.index)
        rows = net.positions(z, 2)
        assert rows.shape == (2, 4, site.positions, site.units)
        torch.testing.assert_close(net.from_positions(rows, z), z, rtol=0, atol=0)
        other = torch.randn(rows.shape, dtype=rows.dtype, generator=torch.Generator().manual_seed(0))
        torch.testing.assert_close(net.positions(net.from_positions(other, z), 2), other, rtol=0, atol=0)


@every_net
def test_shifted_sites(net: Net) -> None:
    """Signals that only measure unfinished training would enter claims: a trained vector that is added on the way to a
    site, as 1 in place of 0 shows, would not be marked."""
    leaves, x = initial_leaves(net, members=1), inputs(net, members=1, batch=4)
    moved = {name: leaf + 1 if leaf.dim() == 2 and "gain" not in name else leaf for name, leaf in leaves.items()}
    for site in net.sites():
        same = torch.equal(run_to(net, leaves, x, site.index), run_to(net, moved, x, site.index))
        assert site.shifted == (not same)


def is_homogeneous(net: Net) -> bool:
    if isinstance(net, ResMLP):
        return not net.bias
    return isinstance(net, ResNet) and net.post_norm and net.norm != "batch"


@every_net
def test_gradient_is_orthogonal_to_the_stream(net: Net) -> None:
    """The bias-free reference net would not be the one whose signal the theory speaks of. In it
    f(c z) = Norm(c (z + W2 relu(W1 z))) = f(z) for every c > 0 at every site but the last, so d/dc gives z . zeta = 0;
    eps leaves a share eps of the next site's z . zeta. A bias inside a block breaks this (a shift after Norm does not),
    so do BatchNorm in eval mode, which divides by a constant, a block without post-norm, and the head."""
    leaves, x, y = trained_leaves(net, 1), inputs(net, 1, 16), labels(net, 1, 16)
    pairs = stream_and_gradients(net, leaves, x, y)
    cosines = [functional.cosine_similarity(z, zeta, dim=1).abs().median().item() for z, zeta in pairs]
    assert cosines[-1] > 1e-3
    if is_homogeneous(net):
        assert max(cosines[:-1]) < 10 * (net.eps if isinstance(net, ResMLP) else EPS)
    else:
        assert min(cosines[:-1]) > 1e-3


@pytest.mark.parametrize("net", MLPS)
def test_scale_of_the_first_layer(net: ResMLP) -> None:
    """Norm would not cap the stream. Without bias Norm(c W_in x) = Norm(W_in x): eps changes z_0 by a share of eps
    along itself, which the next Norm takes out again. A bias does not scale along."""
    leaves, x = trained_leaves(net, members=1), inputs(net, members=1, batch=8)
    scaled = leaves | {"stem.weight": 3 * leaves["stem.weight"]}
    change = (forward(net, scaled, x) - forward(net, leaves, x)).abs().max() / forward(net, leaves, x).abs().max()
    assert change > 1e-3 if net.bias else change < 1e3 * net.eps**2


@pytest.mark.parametrize("net", [*MLPS, *(one for one in RESNETS if one.values[0].norm != "group")])
def test_hidden_units_have_no_order(net: Net) -> None:
    """W1 -> P W1, W2 -> W2 P' (and P on whatever sits between them) is the same function: relu and the norm in between
    act on each hidden unit alone. If it were not, units would be wired to places."""
    order = torch.arange(net.sites()[1].units).flip(0)
    leaves, x = trained_leaves(net, members=2), inputs(net, members=2, batch=4)
    first, second = ("w1", "w2") if isinstance(net, ResMLP) else ("conv1", "conv2")
    permuted = dict(leaves)
    for name in leaves:
        if name.startswith(("blocks.0.b1", "blocks.0.norm1.", f"blocks.0.{first}")):
            permuted[name] = leaves[name][:, order]
    permuted[f"blocks.0.{second}"] = leaves[f"blocks.0.{second}"][:, :, order]
    torch.testing.assert_close(forward(net, permuted, x), forward(net, leaves, x), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("net", "variances"),
    [
        (ResMLP(2, 128, (50,), 40), {"stem.weight": 1 / 50, "w1": 2 / 128, "w2": 1 / 256, "head.weight": 0.01}),
        (
            ResNet(3, 16, (3, 8, 8), 40),
            {
                "stem.weight": 2 / 144,
                "0.conv1": 2 / 144,
                "1.conv1": 1 / 144,
                "2.conv2": 1 / 288,
                "head.weight": 1 / 192,
            },
        ),
        (
            ResNet(3, 16, (3, 8, 8), 40, post_norm=True),
            {"stem.weight": 2 / 144, "0.conv1": 2 / 144, "0.conv2": 2 / 432, "2.conv1": 1 / 288, "2.conv2": 1 / 864},
        ),
    ],
    ids=["resmlp", "resnet", "resnet_post"],
)
def test_initial_variances(net: Net, variances: dict[str, float]) -> None:
    """Training would start elsewhere than documented. n Gaussian values have a mean within 5 sd / sqrt(n) of 0 and, by
    the chi-square law, a variance within 5 sqrt(2 / n) of the true one; gains and variances start at 1, shifts at 0."""
    leaves = net.initial_leaves(np.random.default_rng(3))
    for name, leaf in leaves.items():
        if leaf.ndim == 1:
            assert (leaf == float(name.endswith(("gain", "variance")))).all()
        for ending, variance in variances.items():
            if name.endswith(ending):
                assert abs(leaf.mean()) < 5 * math.sqrt(variance / leaf.size)
                assert np.square(leaf).mean() / variance == pytest.approx(1, abs=5 * math.sqrt(2 / leaf.size))
    again, other = (net.initial_leaves(np.random.default_rng(seed)) for seed in (3, 4))
    assert all(np.array_equal(leaf, again[name]) for name, leaf in leaves.items())
    assert not np.array_equal(leaves["stem.weight"], other["stem.weight"])


@pytest.mark.parametrize("depth", [1, 4])
def test_coordinates_across_widths(depth: int) -> None:
    """A width sweep would also be a sweep of scale. At step 0 the stream's RMS is 1 at each site, and a branch adds
    E|W2 relu(W1 z)|^2 / N = (1 / (N L)) N (2 / N) N / 2 = 1 / L of it, at every width: no slope."""
    widths = [8, 16, 32, 64, 128, 256]
    branches = []
    for width in widths:
        net = ResMLP(depth, width, (20,), 10)
        leaves, x = initial_leaves(net, members=16), inputs(net, members=16, batch=8)
        sizes = []
        for site in range(depth + 1):
            z = run_to(net, leaves, x, site)
            torch.testing.assert_close(z.square().mean(-1), torch.ones(16, 8, dtype=z.dtype), rtol=0, atol=1e-4)
            if site < depth:
                hidden = torch.relu(z @ leaves[f"blocks.{site}.w1"].mT)
                sizes.append((hidden @ leaves[f"blocks.{site}.w2"].mT).square().mean())
        branches.append(float(torch.stack(sizes).mean()))
    slope, level = np.polyfit(np.log(widths), np.log(branches), 1)
    assert abs(slope) < 0.05
    assert np.exp(level + slope * np.log(64)) == pytest.approx(1 / depth, rel=0.1)


@pytest.mark.parametrize("width", [8, 32, 128])
def test_coordinates_of_the_map(width: int) -> None:
    """The post-normalised ResNet's stream would not have RMS 1 at each position, whatever the width."""
    net = ResNet(3, width, (3, 8, 8), 10, norm="rms", post_norm=True)
    leaves, x = initial_leaves(net, members=2), inputs(net, members=2, batch=2)
    for site in net.sites():
        z = torch.unflatten(run_to(net, leaves, x, site.index), 1, (2, site.units))
        torch.testing.assert_close(z.square().mean(2), torch.ones_like(z[:, :, 0]), rtol=0, atol=1e-4)


def test_groups() -> None:
    """GroupNorm would refuse a width, or erase a channel that is alone in its group at the only position of its map."""
    for channels in range(2, 300):
        count = groups(channels)
        better = [g for g in range(count + 1, 9) if channels % g == 0 and channels // g >= 2]
        assert channels % count == 0
        assert not better
        assert 1 <= count <= min(8, channels // 2)


def test_norm_in_half_precision() -> None:
    """Under bfloat16 the norm itself would be off by per cents, as it is with statistics summed in bfloat16."""
    z = (3 + torch.randn(4, 4096, generator=torch.Generator().manual_seed(0))).bfloat16()
    assert rms_norm(z).dtype == torch.bfloat16
    torch.testing.assert_close(rms_norm(z).double(), rms_norm(z.double()), rtol=2**-8, atol=0)


@every_net
def test_autocast(net: Net) -> None:
    """bfloat16 training would not be training of the same net, or running statistics would lose their digits."""
    leaves, x = trained_leaves(net, 2, dtype=torch.float32), inputs(net, 2, 16, dtype=torch.float32)
    rough = {name: leaf.clone() for name, leaf in leaves.items()}
    expected = forward(net, leaves, x, train=True)
    with torch.autocast("cpu", torch.bfloat16):
        logits = forward(net, rough, x, train=True)
    assert (logits - expected).abs().max() < 0.05 * expected.abs().max()
    for name in net.buffer_shapes():
        assert rough[name].dtype == torch.float32
        torch.testing.assert_close(rough[name], leaves[name], rtol=0.02, atol=0.01)


@pytest.mark.parametrize(
    ("spec", "depth", "width", "shape", "says"),
    [
        ({"family": "resmlp"}, 0, 4, (5,), "depth 0"),
        ({"family": "resmlp"}, 2, -1, (5,), "width -1"),
        ({"family": "resmlp", "norm": "batch"}, 2, 4, (5,), "norm 'batch' is not known; accepted: rms, layer"),
        ({"family": "resmlp", "post_norm": True}, 2, 4, (5,), "post_norm"),
        ({"family": "resnet"}, 0, 4, (3, 8, 8), "depth 0 must be a positive multiple of 3"),
        ({"family": "resnet"}, 4, 4, (3, 8, 8), "depth 4 must be a positive multiple of 3"),
        ({"family": "resnet"}, -3, 4, (3, 8, 8), "depth -3 must be a positive multiple of 3"),
        ({"family": "resnet"}, 3, -4, (3, 8, 8), "width -4"),
        ({"family": "resnet", "norm": "group"}, 3, 1, (3, 8, 8), "width 1 must be at least 2 with norm 'group'"),
        ({"family": "resnet"}, 3, 4, (40,), r"input shape \(40,\) must be \(channels, height, width\)"),
        ({"family": "resnet", "norm": "layer"}, 3, 4, (3, 8, 8), "norm 'layer' is not known; accepted: batch, group"),
        ({"family": "resnet", "stem_stride": 3}, 3, 4, (3, 8, 8), "stem_stride 3"),
        ({"family": "resnet", "gain": True}, 3, 4, (3, 8, 8), "gain"),
        ({"family": "restnet"}, 3, 4, (3, 8, 8), "family 'restnet' is not known; accepted: resmlp, resnet"),
        ({"norm": "rms"}, 3, 4, (5,), "family 'None' is not known"),
    ],
)
def test_bad_input(spec: dict[str, object], depth: int, width: int, shape: tuple[int, ...], says: str) -> None:
    """A typing error in a config would end in a traceback, or worse, in a net."""
    with pytest.raises(InputError, match=says) as caught:
        build_net(spec, depth, width, shape, CLASSES)
    assert "\n" not in str(caught.value)


@settings(max_examples=60, deadline=None)
@given(
    family=st.sampled_from(["resmlp", "resnet"]),
    norm=st.integers(0, 2),
    switch=st.booleans(),
    thirds=st.integers(1, 2),
    width=st.integers(1, 9),
    members=st.integers(1, 3),
    batch=st.integers(1, 4),
    size=st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9)),
)
def test_any_valid_net(
    family: str, norm: int, switch: bool, thirds: int, width: int, members: int, batch: int, size: tuple[int, int, int]
) -> None:
    """A cell of somebody's grid would fail or give non-finite logits at step 0."""
    if family == "resmlp":
        net = build_net(
            {"family": family, "norm": ["rms", "layer", "rms"][norm], "bias": switch}, thirds, width, size, 4
        )
    else:
        spec = {"family": family, "norm": ["batch", "group", "rms"][norm], "post_norm": switch}
        net = build_net(spec, 3 * thirds, width + 1, size, 4)
    logits = forward(net, initial_leaves(net, members), inputs(net, members, batch))
    assert logits.shape == (members, batch, 4)
    assert logits.isfinite().all()
