"""Models of timm as nets: pretrained ResNets and ViTs are measured through this adapter, and a number about "ResNet-50"
that is about something else would be believed. Everything is held against the timm model itself."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from jumpboard.errors import InputError
from jumpboard.expansion.insertion import insert, site_groups
from jumpboard.measure.gradients import site_gradients
from jumpboard.nets.base import check_leaves, forward, run_from, run_to
from jumpboard.nets.cutting import cut
from jumpboard.nets.registry import build_net
from jumpboard.nets.timm_net import TimmNet, skeleton
from jumpboard.training.engine import Training, TrainingData
from jumpboard.training.evaluation import cross_entropy
from jumpboard.training.recipe import Optimiser, Recipe
from oracles.plain_timm import plain_timm
from oracles.training_loop import train

CLASSES, SIDE, BATCH = 3, 32, 4
SIZES = {
    "resnet18": (8, 64),
    "resnet50": (16, 64),
    "wide_resnet50_2": (16, 64),
    "resnetblur18": (8, 64),  # its blurring filter is a constant that no file of weights holds
    "resnetv2_50": (16, 64),  # a BatchNorm behind the last block
    "convnext_atto": (12, 40),
    "regnety_002": (13, 32),
    "vit_tiny_patch16_224": (12, 192),
    "deit_tiny_patch16_224": (12, 192),
    "deit_tiny_distilled_patch16_224": (12, 192),
    "mixer_s16_224": (8, 512),
}
SMALL = {"test_resnet": (4, 32), "test_vit": (6, 64)}
Leaves = dict[str, Tensor]
every_model = pytest.mark.parametrize("model", SIZES)


@cache
def net_of(model: str, shape: tuple[int, ...] = (3, SIDE, SIDE)) -> TimmNet:
    depth, width = (SIZES | SMALL)[model]
    net = build_net({"family": "timm", "model": model}, depth, width, shape, CLASSES)
    assert isinstance(net, TimmNet)
    return net


def leaves_of(net: TimmNet, members: int = 1, dtype: torch.dtype = torch.float32) -> Leaves:
    """Random leaves [G, ...] that have left their initial 0 and 1: forgetting one shows."""
    generator = torch.Generator().manual_seed(5)
    each = [net.initial_leaves(np.random.default_rng(member)) for member in range(members)]
    leaves = {name: torch.from_numpy(np.stack([one[name] for one in each])).to(dtype) for name in each[0]}
    for name, leaf in leaves.items():
        if leaf.dim() == 2:
            noise = 0.2 * torch.randn(leaf.shape, generator=generator).to(dtype)
            leaves[name] = leaf * noise.exp() if name.endswith("running_var") else leaf + noise
    return leaves


def inputs(net: TimmNet, members: int = 1, batch: int = BATCH, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(members, batch, *net.input_shape, generator=torch.Generator().manual_seed(6)).to(dtype)


def of_member(leaves: Mapping[str, Tensor], member: int) -> Leaves:
    return {name: leaf[member] for name, leaf in leaves.items()}


@every_model
def test_it_is_the_timm_model(model: str) -> None:
    """In evaluation mode, in train mode where BatchNorm makes a difference, and in the running statistics that
    training leaves; and cut at any site it goes on as the whole does."""
    net = net_of(model)
    leaves, x = leaves_of(net), inputs(net)
    module = plain_timm(net, of_member(leaves, 0))
    with torch.no_grad():
        whole = forward(net, leaves, x)
        torch.testing.assert_close(whole[0], module(x[0]), rtol=1e-5, atol=1e-5)
        for site in net.sites()[:: 8 if model == "wide_resnet50_2" else 1]:
            z = run_to(net, leaves, x, site.index)
            torch.testing.assert_close(run_from(net, leaves, z, site.index), whole, rtol=0, atol=0)
            rows = net.positions(z, 1)
            assert rows.shape == (1, BATCH, site.positions, site.units)
            torch.testing.assert_close(net.from_positions(rows, z), z, rtol=0, atol=0)
            other = torch.randn(rows.shape, generator=torch.Generator().manual_seed(site.index))
            torch.testing.assert_close(net.positions(net.from_positions(other, z), 1), other, rtol=0, atol=0)
        trained = forward(net, leaves, x, train=True)
        torch.testing.assert_close(trained[0], module.train()(x[0]), rtol=1e-4, atol=1e-4)
    assert bool(net.buffer_shapes()) == (not torch.allclose(trained, whole, rtol=1e-3))
    for name in net.buffer_shapes():
        torch.testing.assert_close(leaves[name][0], module.state_dict()[name], rtol=1e-5, atol=1e-5)


def hooked_gradients(net: TimmNet, module: Any, x: Tensor, y: Tensor) -> list[Tensor]:
    """d loss / d stream at the first block's input and at every block's output, by hooks on the timm model."""
    if "vit" in net.model:
        blocks = list(module.blocks)
    elif "convnext" in net.model:
        blocks = [block for stage in module.stages for block in stage.blocks]
    else:
        blocks = [block for index in range(1, 5) for block in getattr(module, f"layer{index}")]
    streams: list[Tensor] = []
    before = module.stages[0] if "convnext" in net.model else blocks[0]
    handles = [before.register_forward_pre_hook(lambda _, given: streams.append(given[0]))]
    handles += [block.register_forward_hook(lambda _, __, out: streams.append(out)) for block in blocks]
    loss = functional.cross_entropy(module(x), y, reduction="sum")
    gradients = list(torch.autograd.grad(loss, streams))
    for handle in handles:
        handle.remove()
    return gradients


@pytest.mark.parametrize("model", ["resnet18", "resnet50", "convnext_atto", "vit_tiny_patch16_224"])
def test_gradients_at_sites_are_those_of_hooks(model: str) -> None:
    """A gradient of another tensor, or of units taken for positions, would pass as the activation gradient."""
    net = net_of(model)
    leaves, x, y = leaves_of(net), inputs(net), torch.tensor([[0, 2, 1, 1]])
    wanted = hooked_gradients(net, plain_timm(net, of_member(leaves, 0)), x[0], y[0])
    found = site_gradients(net, leaves, x, y)
    assert len(found) == len(wanted) == net.depth + 1
    for (_, zeta), gradient in zip(found, wanted, strict=True):
        rows = gradient if gradient.dim() == 3 else gradient.flatten(2).transpose(1, 2)
        torch.testing.assert_close(zeta[0], rows, rtol=1e-3, atol=1e-5 * float(rows.abs().max()))
    alone = site_gradients(net, leaves, x[:, 1:2], y[:, 1:2])
    for (_, zeta), (_, together) in zip(alone, found, strict=True):
        torch.testing.assert_close(zeta[0, 0], together[0, 1], rtol=1e-3, atol=1e-5 * float(zeta.abs().max()))


@pytest.mark.parametrize("model", SMALL)
def test_a_new_block_changes_nothing_and_can_learn(model: str) -> None:
    """Other people's nets are expanded too: at every site, in maps and in tokens, with members of their own."""
    net = net_of(model)
    leaves, x = leaves_of(net, 2, torch.float64), inputs(net, 2, dtype=torch.float64)
    y = torch.arange(BATCH).expand(2, -1) % CLASSES
    wanted = forward(net, leaves, x)
    for group in site_groups(net):
        expanded, more = insert(net, leaves, group, (3, 4))
        found = forward(expanded, more, x.repeat(len(group), *[1] * (x.dim() - 1)))
        torch.testing.assert_close(found, wanted.repeat(len(group), 1, 1), rtol=1e-10, atol=1e-10)
        assert expanded.insert_form == "bare"
        last = more["insert.0.a"].requires_grad_()
        logits = forward(expanded, {**more, "insert.0.a": last}, x.repeat(len(group), *[1] * (x.dim() - 1)))
        slopes = torch.autograd.grad(cross_entropy(logits, y.repeat(len(group), 1)).sum(), last)[0]
        assert (slopes.flatten(1).norm(dim=1) > 0).all()


@pytest.mark.parametrize("model", SMALL)
def test_members_do_not_talk(model: str) -> None:
    """Seeds of one job would not be independent: logits, gradients with respect to weights, running statistics."""
    net = net_of(model)
    leaves, x = leaves_of(net, 3, torch.float64), inputs(net, 3, dtype=torch.float64)
    alone = [{name: leaf[None].clone() for name, leaf in of_member(leaves, member).items()} for member in range(3)]

    def passed(own: Leaves, given: Tensor) -> list[Tensor]:
        trained = [own[name].requires_grad_() for name in net.parameter_shapes()]
        logits = forward(net, own, given, train=True)
        gradients = torch.autograd.grad(logits.square().sum(), trained)
        return [logits.detach(), *gradients, *(own[name] for name in net.buffer_shapes())]

    together = passed(leaves, x)
    for member, own in enumerate(alone):
        for one, other in zip(passed(own, x[member : member + 1]), together, strict=True):
            torch.testing.assert_close(one[0], other[member], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "parameters", "billions"),
    [
        ("resnet18", 11_689_512, 1.814),
        ("resnet50", 25_557_032, 4.089),
        ("wide_resnet50_2", 68_883_240, 11.398),
        ("vit_tiny_patch16_224", 5_717_416, 1.254),
        ("regnety_002", 3_162_996, 0.200),
    ],
)
def test_published_sizes(model: str, parameters: int, billions: float) -> None:
    """Parameters and multiply-adds at 224 x 224 and 1,000 classes, as the papers and timm's own tables give them (the
    ViT's 1.08 of timm lacks the two products of attention, 12 layers x 2 x 197^2 x 192)."""
    depth, width = SIZES[model]
    net = TimmNet(depth, width, (3, 224, 224), 1000, model)
    assert net.parameter_count() == parameters
    assert net.forward_flops() / 2e9 == pytest.approx(billions, abs=5e-4)
    if model == "resnet18":
        assert [(site.units, site.positions) for site in net.sites()] == [
            *[(64, 56**2)] * 3, *[(128, 28**2)] * 2, *[(256, 14**2)] * 2, *[(512, 7**2)] * 2,
        ]  # fmt: skip
    if model.startswith("vit"):
        assert {(site.units, site.positions) for site in net.sites()} == {(192, 197)}


@pytest.mark.parametrize("model", ["resnet18", "resnetv2_50", "vit_tiny_patch16_224"])
def test_shifted_sites(model: str) -> None:
    """A site is marked if and only if a trained vector is added on the way to it, as 1 in place of 0 shows."""
    net = net_of(model)
    leaves, x = leaves_of(net), inputs(net, batch=2)
    moved = {
        name: leaf + 1 if name in net.parameter_shapes() and not name.endswith("weight") else leaf
        for name, leaf in leaves.items()
    }
    sites = net.sites()
    for site in (sites[0], sites[1], sites[-1]):
        same = torch.equal(run_to(net, leaves, x, site.index), run_to(net, moved, x, site.index))
        assert site.shifted == (not same)
    assert sites[0].shifted == (model != "resnetv2_50")


def test_random_weights_are_functions_of_the_seed() -> None:
    """A seed must give its net in any job, beside any other use of torch's generator, and leave that one alone."""
    net = net_of("test_resnet")
    before = torch.random.get_rng_state()
    first = net.initial_leaves(np.random.default_rng(3))
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(7)
    again, other = (net.initial_leaves(np.random.default_rng(seed)) for seed in (3, 4))
    assert list(first) == [*net.parameter_shapes(), *net.buffer_shapes()]
    assert {name: leaf.shape for name, leaf in first.items()} == net.parameter_shapes() | net.buffer_shapes()
    assert all(leaf.dtype == np.float32 for leaf in first.values())
    assert all(np.array_equal(leaf, again[name]) for name, leaf in first.items())
    assert not np.array_equal(first["conv1.0.weight"], other["conv1.0.weight"])
    assert not [name for name in first if name.endswith("num_batches_tracked")]


def stored(net: TimmNet, seed: int = 9) -> Leaves:
    """Weights as timm saves them, BatchNorm's counts among them."""
    leaves = {name: torch.from_numpy(leaf) for name, leaf in net.initial_leaves(np.random.default_rng(seed)).items()}
    return {name: tensor.clone() for name, tensor in plain_timm(net, leaves).state_dict().items()}


def with_weights(path: Path, model: str = "test_resnet", classes: int = CLASSES) -> TimmNet:
    return TimmNet(*SMALL[model], (3, SIDE, SIDE), classes, model, str(path))


WRITERS: dict[str, Callable[[Leaves, Path], None]] = {
    "plain.safetensors": save_file,
    "plain.pth": torch.save,
    "wrapped.pth": lambda tensors, path: torch.save({"epoch": 3, "state_dict": tensors}, path),
    "trained.pth": lambda tensors, path: torch.save(
        {name: nn.Parameter(one) if one.is_floating_point() else one for name, one in tensors.items()}, path
    ),
    "parallel.pt": lambda tensors, path: torch.save({"model": {f"module.{n}": t for n, t in tensors.items()}}, path),
    "half.safetensors": lambda tensors, path: save_file(
        {name: one.bfloat16() if one.is_floating_point() else one for name, one in tensors.items()}, path
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_weights_come_from_a_file(name: str, tmp_path: Path) -> None:
    """The net that is measured must be the file's, whatever the seed."""
    tensors = stored(net_of("test_resnet"))
    WRITERS[name](tensors, tmp_path / name)
    net = with_weights(tmp_path / name)
    for seed in (0, 1):
        for leaf, value in net.initial_leaves(np.random.default_rng(seed)).items():
            wanted = tensors[leaf].bfloat16().float() if name.startswith("half") else tensors[leaf]
            assert value.dtype == np.float32
            assert np.array_equal(value, wanted.numpy()), leaf


class Hostile:
    """Runs code when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.marker,))


def test_a_hostile_file_runs_no_code(tmp_path: Path) -> None:
    """Files of weights are passed around; loading one must not hand over the machine."""
    path, marker = tmp_path / "weights.pth", tmp_path / "owned"
    torch.save({"state_dict": stored(net_of("test_resnet")), "extra": Hostile(marker)}, path)
    with pytest.raises(InputError, match=r"weights.pth: cannot be read: not a whole file of tensors alone") as caught:
        with_weights(path).initial_leaves(np.random.default_rng(0))
    assert "\n" not in str(caught.value)
    assert not marker.exists()


def without(name: str) -> Callable[[Leaves], Any]:
    return lambda tensors: {key: value for key, value in tensors.items() if key != name}


@pytest.mark.parametrize(
    ("file", "change", "classes", "says"),
    [
        ("a.pth", without("layer2.0.conv1.weight"), 3, "lacks the leaf 'layer2.0.conv1.weight'"),
        ("a.pth", lambda tensors: tensors | {"extra.bias": torch.zeros(2)}, 3, "holds the leaf 'extra.bias'"),
        (
            "a.pth",
            lambda tensors: tensors | {"conv1.0.weight": torch.zeros(2)},
            3,
            "leaf 'conv1.0.weight' has shape [2]",
        ),
        ("a.safetensors", dict, 10, "is the head of 3 classes, but the data set has 10"),
        ("a.pth", lambda _: [1, 2], 3, "holds list; accepted: tensors by name"),
        ("a.pth", lambda _: {}, 3, "holds dict; accepted: tensors by name"),
        ("a.pth", lambda tensors: {"net": tensors}, 3, "key 'net' holds dict; accepted: tensors by name"),
        ("a.bin", dict, 3, "accepted: .safetensors, .pth, .pt"),
        ("a.pth", None, 3, "no such file"),
        ("a.safetensors", "cut", 3, "cannot be read"),
        ("a.pth", "cut", 3, "cannot be read"),
        ("a.pth", lambda own: {"state_dict": own, "state_dict_ema": own}, 3, "under 'state_dict' and 'state_dict_ema'"),
        ("a.pth", lambda own: {"model": own, "model_ema": own}, 3, "holds weights under 'model' and 'model_ema'; acc"),
        ("a.pth", lambda own: {"model_ema": own}, 3, "key 'model_ema' holds dict; accepted: tensors by name"),
        ("a.pth", "folder", 3, "is a folder; accepted: one file, .safetensors, .pth, .pt"),
        ("a", "folder", 3, "is a folder; accepted: one file, .safetensors, .pth, .pt"),
    ],
)
def test_weights_of_another_net_are_refused(file: str, change: Any, classes: int, says: str, tmp_path: Path) -> None:
    """Half-loaded weights give a net that nobody trained, and no message."""
    path = tmp_path / file
    if callable(change):
        (save_file if file.endswith("tensors") else torch.save)(change(stored(net_of("test_resnet"))), path)
    elif change == "folder":
        path.mkdir()
    elif change:
        WRITERS[f"plain{path.suffix}"](stored(net_of("test_resnet")), path)
        path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(InputError) as caught:
        with_weights(path, classes=classes).initial_leaves(np.random.default_rng(0))
    text = str(caught.value)
    assert text.startswith(str(path))
    assert says in text
    assert "\n" not in text


def with_one(value: float) -> Callable[[Tensor], Tensor]:
    return lambda leaf: leaf.index_fill(0, torch.tensor([1]), value)


@pytest.mark.parametrize(
    ("file", "leaf", "change", "says"),
    [
        ("a.pth", "fc.weight", Tensor.to_sparse, "is a sparse tensor; accepted: dense tensors with values"),
        ("a.pth", "fc.weight", Tensor.to_sparse_csr, "is a sparse tensor; accepted: dense tensors with values"),
        ("a.pth", "fc.weight", lambda leaf: leaf.to("meta"), "is a meta tensor; accepted: dense tensors with values"),
        ("a.pth", "fc.weight", lambda leaf: torch.nested.nested_tensor([leaf]), "is a nested tensor; accepted: dense"),
        (
            "a.pth",
            "fc.weight",
            lambda leaf: torch.quantize_per_tensor(leaf, 0.1, 0, torch.qint8),
            "is a quantised tensor; accepted: dense tensors with values",
        ),
        ("a.pth", "fc.weight", lambda leaf: leaf.to(torch.complex64), "is of torch.complex64; accepted: floating poi"),
        ("a.safetensors", "fc.bias", Tensor.int, "is of torch.int32; accepted: floating point"),
        ("a.safetensors", "bn1.running_mean", Tensor.bool, "is of torch.bool; accepted: floating point"),
        ("a.safetensors", "fc.bias", with_one(float("nan")), "holds NaN or infinite values; accepted: finite float32"),
        ("a.safetensors", "fc.bias", with_one(-float("inf")), "holds NaN or infinite values; accepted: finite float32"),
        ("a.pth", "fc.bias", lambda leaf: with_one(1e300)(leaf.double()), "holds NaN or infinite values; accepted: fi"),
        ("a.pth", "bn1.running_var", with_one(-0.5), "holds the variance -0.5; accepted: 0 or more"),
    ],
)
@pytest.mark.filterwarnings("ignore")  # torch warns of some kinds of tensor where they are made
def test_leaves_that_are_no_usable_numbers_are_named(
    file: str, leaf: str, change: Callable[[Tensor], Tensor], says: str, tmp_path: Path
) -> None:
    """They would end in a traceback far from the file, or be measured as a net of NaN or of rounded weights."""
    path, tensors = tmp_path / file, stored(net_of("test_resnet"))
    tensors[leaf] = change(tensors[leaf])
    WRITERS[f"plain{path.suffix}"](tensors, path)
    with pytest.raises(InputError) as caught:
        with_weights(path).initial_leaves(np.random.default_rng(0))
    assert str(caught.value).startswith(f"{path}: leaf '{leaf}' {says}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "depth", "width", "shape", "says"),
    [
        ("resnet18", 8, 32, (3, 32, 32), "depth 8 and width 32 do not fit; depth 8 and width 64 are resnet18's"),
        ("resnet18", 9, 64, (3, 32, 32), "depth 9 and width 64 do not fit; depth 8 and width 64 are resnet18's"),
        ("resnt18", 8, 64, (3, 32, 32), "model 'resnt18' is not known; nearest: resnet18"),
        (
            "resnet18.a1_in1k",
            8,
            64,
            (3, 32, 32),
            "model 'resnet18.a1_in1k' holds the tag of pretrained weights; accepted",
        ),
        ("resnet18.a1_in1k", 8, 64, (3, 32, 32), "accepted: 'resnet18', with the file of the weights under 'weights'"),
        ("hf-hub:timm/resnet18.a1_in1k", 8, 64, (3, 32, 32), "is not known; nearest:"),
        ("resnet18", 8, 64, (40,), "input shape (40,) must be (channels, height, width)"),
        ("vit_tiny_patch16_224", 12, 192, (3, 28, 28), "patches of 16 x 16, of which (3, 28, 28) is no multiple"),
        ("convnext_atto", 12, 40, (3, 8, 8), "convnext_atto on inputs of shape (3, 8, 8) cannot be used: Calculated"),
        ("densenet121", 58, 64, (3, 32, 32), "no residual blocks where they are looked for; supported are"),
        ("vgg11", 8, 64, (3, 32, 32), "no residual blocks where they are looked for; supported are"),
        ("swin_tiny_patch4_window7_224", 12, 96, (3, 224, 224), "no residual blocks where they are looked for; supp"),
        ("efficientnet_b0", 16, 32, (3, 32, 32), "(a part alone fails: Invalid channel dimensions); supported are"),
        ("mobilenetv2_050", 16, 32, (3, 32, 32), "used: its forward pass is not stem, blocks and head one after the"),
        ("eva02_tiny_patch14_224", 12, 192, (3, 28, 28), "not stem, blocks and head one after the other; supported"),
        ("test_mambaout", 4, 32, (3, 64, 64), "no map with the channels in front; supported are"),
        ("hiera_tiny_224", 16, 96, (3, 224, 224), "its stream is no sequence of tokens; supported are"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    model: str, depth: int, width: int, shape: tuple[int, ...], says: str
) -> None:
    """Silently wrong sites are worse than none."""
    with pytest.raises(InputError) as caught:
        build_net({"family": "timm", "model": model}, depth, width, shape, CLASSES)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "model", ["mobilenetv1_100", "lcnet_050", "vovnet39a", "hgnet_tiny", "repvgg_a0", "mobileone_s0"]
)
def test_nets_without_skips_are_refused(model: str) -> None:
    """They are cut as ResNets are, but have no residual stream: their numbers would stand beside those of ResNets."""
    with pytest.raises(InputError, match="its block 1 adds no nonlinear branch to its input; supported are") as caught:
        skeleton(model, (3, SIDE, SIDE), CLASSES, train=False)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("train", [False, True], ids=["evaluated", "trained"])
@pytest.mark.parametrize(
    ("model", "depth"),
    [
        ("resnet26t", 8),  # pooled and projected shortcuts
        ("seresnet50", 16),
        ("resnetblur18", 8),
        ("resnetv2_50d", 16),  # an activation ahead of projections
        ("nf_resnet50", 16),
        ("nfnet_l0", 12),
        ("regnety_002", 13),
        ("convnextv2_atto", 12),
        ("deit3_small_patch16_224", 12),  # layer scale
        ("poolformer_s12", 12),  # one branch of two is linear
        ("edgenext_xx_small", 12),
        ("inception_next_atto", 12),
        ("darknet53", 23),  # an activation behind projections
    ],
)
def test_residual_nets_are_taken(model: str, depth: int, train: bool) -> None:
    """A shortcut may be projected, pooled, scaled or normed; refusing it would shut out most ResNets."""
    assert len(skeleton(model, (3, SIDE, SIDE), CLASSES, train).parts.streams) == depth + 1


class Block(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.first, self.second = kind, nn.Conv2d(6, 6, 1), nn.Conv2d(6, 6, 1)

    def forward(self, z: Tensor) -> Tensor:
        branch = self.second(functional.hardswish(self.first(z)))
        match self.kind:
            case "in place":
                return z.add_(branch)
            case "no skip":
                return branch
            case "linear branches":
                return functional.relu(self.first(z) + self.second(z) + z)
            case "skip of a layer inside":
                inside = functional.relu(self.first(z))
                return inside + self.second(functional.relu(inside))
            case "plain layers behind the skip":
                return functional.relu(self.first(functional.relu(z + branch)))
            case "gate":
                return z * branch.sigmoid()
            case "concatenation":
                return self.first(torch.cat([z, branch], 1)[:, 3:9])
            case _:
                return functional.relu(z + branch)


class Planted(nn.Module):
    """A chain of three blocks, with one fault or none."""

    num_features = 6

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault
        self.stem, self.norm, self.fc = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.Linear(6, CLASSES)
        self.blocks = nn.Sequential(Block(""), Block(fault), Block(""))
        self.drop = nn.Dropout(0.1 if fault == "dropout" else 0.0)

    def forward_features(self, x: Tensor) -> Tensor:
        start = self.stem(x)
        z = self.blocks(start)
        return self.norm(z + start if self.fault == "skip" else z)

    def forward_head(self, z: Tensor) -> Tensor:
        return self.fc(self.drop(z).mean((2, 3)))

    def forward(self, x: Tensor) -> Tensor:
        z = self.forward_features(x)
        if self.fault == "afterthought":
            z = z + 1
        logits = self.forward_head(z)
        return (logits, logits) if self.fault == "two heads" else logits


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("none", ""),
        ("skip", "its forward pass is not stem, blocks and head one after the other"),
        ("afterthought", "its forward pass is not stem, blocks and head one after the other"),
        ("in place", "it changes its stream in place"),
        ("dropout", "it draws random numbers (aten.bernoulli_.float: dropout or stochastic depth)"),
        ("two heads", "its output is not one row of 3 logits for each sample"),
        ("no skip", "its block 2 adds no nonlinear branch to its input"),
        ("linear branches", "its block 2 adds no nonlinear branch to its input"),
        ("skip of a layer inside", "its block 2 adds no nonlinear branch to its input"),
        ("plain layers behind the skip", "its block 2 adds no nonlinear branch to its input"),
        ("gate", "its block 2 adds no nonlinear branch to its input"),
        ("concatenation", "its block 2 adds no nonlinear branch to its input"),
    ],
)
def test_a_forward_pass_that_is_no_chain_is_found_out(fault: str, says: str) -> None:
    """A model that looks like a ResNet by its attributes may do more than its blocks say."""
    module = Planted(fault).to("meta").train()
    if not says:
        assert len(cut(module, "planted", (3, 8, 8), CLASSES).parts) == 5
        return
    with pytest.raises(InputError, match=re.escape(f"planted on inputs of shape (3, 8, 8) cannot be used: {says}; ")):
        cut(module, "planted", (3, 8, 8), CLASSES)


def test_dropout_is_no_hindrance_to_measuring() -> None:
    """In evaluation mode legacy SE-ResNets are a chain; their training, which drops units, is refused."""
    net = TimmNet(8, 64, (3, SIDE, SIDE), CLASSES, "legacy_seresnet18")
    leaves, x = leaves_of(net), inputs(net)
    assert forward(net, leaves, x).shape == (1, BATCH, CLASSES)
    with pytest.raises(InputError, match="draws random numbers"):
        forward(net, leaves, x, train=True)


def test_leaves_of_another_net_are_named() -> None:
    """A checkpoint would be measured as a net that it is not, or end in a traceback."""
    net = net_of("test_resnet")
    leaves = net.initial_leaves(np.random.default_rng(0))
    check_leaves(net, leaves, "file")
    for change, says in (
        ({name: leaf for name, leaf in leaves.items() if name != "fc.bias"}, "file: lacks the leaf 'fc.bias'"),
        (leaves | {"fc.bias": np.zeros(4, np.float32)}, "file: leaf 'fc.bias' has shape [4], in the net [3]"),
        (leaves | {"fc.gain": np.zeros(4, np.float32)}, "file: holds the leaf 'fc.gain', which the net does not have"),
    ):
        with pytest.raises(InputError, match=re.escape(says)):
            check_leaves(net, change, "file")


SGD = Recipe(Optimiser("sgd", 0.05, 0.001, momentum=0.9), "linear", 0, 8, 4, 2, 10, clip=1.0, crop=1, flip=True)
ADAMW = Recipe(Optimiser("adamw", 0.001, 0.05), "cosine", 2, 8, 4, 2, 10)


@pytest.mark.parametrize(("model", "recipe"), [("test_resnet", SGD), ("test_vit", ADAMW)], ids=SMALL)
def test_training_is_that_of_a_plain_loop(model: str, recipe: Recipe) -> None:
    """Running statistics that are lost between steps, or gradients that miss a leaf, would give another net."""
    net, seeds = net_of(model), (3, 1)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(24, *net.input_shape, generator=generator, dtype=torch.float64)
    y = torch.randint(CLASSES, (24,), generator=generator)
    training = Training(net, TrainingData(x, y, x[:8], y[:8]), recipe, seeds)
    assert training.chunk == 1
    start = training.state.flat.clone()
    state = training.run()
    for member, seed in enumerate(seeds):
        before, after = (
            {name: leaf[0] for name, leaf in training.layout.leaves(flat[None]).items()}
            for flat in (start[member], state.flat[member])
        )
        course = train(net, before, recipe, seed, x, y)
        for name, leaf in after.items():
            torch.testing.assert_close(leaf, course.leaves[-1][name], rtol=1e-7, atol=1e-7)
    assert not torch.equal(state.flat[0], start[0])


def test_no_step_at_all_leaves_the_net_as_it_began() -> None:
    """A pretrained net that is measured must be the one of the file, evaluated, with both checkpoints."""
    net = net_of("test_resnet")
    x, y = torch.randn(12, *net.input_shape), torch.randint(CLASSES, (12,))
    training = Training(net, TrainingData(x, y, x, y), Recipe(Optimiser("sgd", 0.1), "cosine", 0, 8, 0, 2, 10), [3])
    start = training.state.flat.clone()
    state = training.run()
    assert {name: step for (_, name), (step, _) in state.snapshots.items()} == {"init": 0, "final": 0}
    for flat in (state.flat[0], state.best[0], *(flat for _, flat in state.snapshots.values())):
        assert torch.equal(flat, start[0])
    assert [step for step, _ in state.history] == [0]
