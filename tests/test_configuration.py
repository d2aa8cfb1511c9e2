"""A config that means something else than its author thinks runs for hours and answers another question: every mistake
must be refused before the first job, in one line that names the key, the value and what is accepted."""

import copy
import importlib
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from snakemake.utils import update_config

from jumpboard.claims.registry import MODULES as CLAIM_KINDS
from jumpboard.configuration.grid import AXES, cells
from jumpboard.configuration.load import load, load_files, merged, read_yaml
from jumpboard.configuration.plan import Plan
from jumpboard.configuration.reference import reference
from jumpboard.configuration.validation import schema
from jumpboard.configuration.workflow import open_run
from jumpboard.data.registry import MODULES as LOADERS
from jumpboard.errors import InputError
from jumpboard.nets.base import Net
from jumpboard.nets.registry import MODULES as FAMILIES

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "config" / "config.yaml"
OVERLAYS = [
    path for path in sorted((ROOT / "config").glob("*.yaml")) if path.stem not in ("config", "datasets", "claims")
]
DEFAULT = read_yaml(CONFIG)
SCHEMAS = ("config", "datasets", "claims")
BLOCK = {"dataset": "mnist1d", "arch": "resmlp", "training": "resmlp", "seeds": [0]}
RECIPE = {"schedule": {"name": "cosine"}, "batch": 8, "steps": 4, "evaluate_every": 2, "state_every": 2}
BASE: dict[str, Any] = {
    **{name: name for name in ("results", "figures", "logs")},
    **{name: f"config/{name}.yaml" for name in ("datasets", "claims")},
    "device": "cpu",
    "nets": {"resmlp": {"family": "resmlp"}, "resnet_bn": {"family": "resnet"}},
    "trainings": {
        "resmlp": {"optimiser": {"name": "adamw", "lr": 0.01}, **RECIPE},
        "resnet": {"optimiser": {"name": "sgd", "lr": 0.1}, **RECIPE},
    },
    "grid": [
        {**BLOCK, "product": {"depth": [1, 2], "width": [8], "samples": [4000]}},
        {
            **BLOCK,
            "arch": "resnet_bn",
            "dataset": "digits",
            "training": "resnet",
            "zip": {"depth": [3], "width": [4], "samples": [200]},
        },
    ],
    "expansions": [
        {
            "dataset": "mnist1d",
            "arch": "resmlp",
            "reference": "final",
            "training": "resmlp",
            "scratch": [0.5],
            "splits": {"train": 100, "test": 100},
            "steps": {"lowest": 0.01, "highest": 0.1, "count": 3},
            "keep_nets": True,
        }
    ],
    "certificates": [{"dataset": "mnist1d", "arch": "resmlp", "losses": ["brier"], "delta": 0.05}],
    "resources": {"train_baseline": {"threads": 1}},
}
CAPS = {"spectral": 1.5, "frobenius": 3.0}
NAN, INFINITY = math.nan, math.inf
KEYWORDS = {
    *("$schema", "title", "description", "type", "enum", "properties", "required", "additionalProperties"),
    *("propertyNames", "minProperties", "items", "minItems", "maxItems", "uniqueItems", "pattern"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "allOf"),
}


def changed(place: str, value: Any) -> dict[str, Any]:
    """A good config with one value changed; `place` is a path such as `grid.0.seeds`."""
    config = copy.deepcopy(BASE)
    node: Any = config
    *parents, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    for part in parents:
        node = node[part]
    node[last] = value
    return config


def refusal(config: Any) -> str:
    """The one line that a config is refused with."""
    with pytest.raises(InputError) as caught:
        load(config)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("overlay", [None, *OVERLAYS], ids=lambda path: path.stem if path else "default")
def test_configs_of_the_checkout_are_good(overlay: Path | None) -> None:
    """A shipped config that is refused is the first thing a newcomer would see."""
    plan = Plan(load_files([CONFIG, overlay] if overlay else [CONFIG]))
    artefacts = list(plan.artefacts())
    assert len({(one.place, one.path) for one in artefacts}) == len(artefacts)
    for one in artefacts:
        plan.digests(one.rule, one.keys)


def test_configs_of_the_checkout_have_folders_of_their_own() -> None:
    """Two configs in one folder overwrite each other's results."""
    configs = [DEFAULT, *(merged(DEFAULT, read_yaml(overlay)) for overlay in OVERLAYS)]
    folders = [config[name] for config in configs for name in ("results", "figures", "logs")]
    assert len(set(folders)) == len(folders)
    assert "smoke" in [path.stem for path in OVERLAYS]


@pytest.mark.parametrize(
    ("place", "value", "parts"),
    [
        ("resuls", "x", ["'resuls' is not known", "nearest: 'results'"]),
        ("nets.resmlp.biass", True, ["'biass' in 'nets.resmlp' is not known", "nearest: 'bias'"]),
        ("trainings.resmlp.optimiser.learning_rate", 1, ["'learning_rate' in 'trainings.resmlp.optimiser'"]),
        ("grid.0.product.dept", [1], ["'dept' in 'grid[0].product' is not known", "nearest: 'depth'"]),
        ("resources.train_baseline.thread", 2, ["'thread' in 'resources.train_baseline'", "nearest: 'threads'"]),
        ("resources.train_basline", {}, ["'train_basline' in 'resources' is not known", "nearest: 'train_baseline'"]),
        ("grid.0.product.depth", [0], ["grid[0].product.depth[0] is 0", "at least 1"]),
        ("grid.0.product.width", [8, -3], ["grid[0].product.width[1] is -3", "at least 1"]),
        ("grid.0.product.depth", [1.0], ["grid[0].product.depth[0] is 1.0", "integer"]),
        ("grid.0.product.depth", [True], ["grid[0].product.depth[0] is True", "integer"]),
        ("grid.0.product.depth", "8", ["grid[0].product.depth is '8'", "array"]),
        ("grid.0.product.depth", [], ["grid[0].product.depth"]),
        ("grid.0.seeds", [0, 0], ["grid[0].seeds"]),
        ("grid.0.seeds", [-1], ["grid[0].seeds[0] is -1", "at least 0"]),
        ("grid", [], ["grid"]),
        ("grid", None, ["grid is None", "array"]),
        ("trainings.resmlp.optimiser.lr", "1e-3", ["trainings.resmlp.optimiser.lr is '1e-3'", "number"]),
        ("trainings.resmlp.optimiser.lr", 0, ["trainings.resmlp.optimiser.lr is 0", "more than 0"]),
        ("trainings.resmlp.optimiser.lr", NAN, ["trainings.resmlp.optimiser.lr is nan", "number"]),
        ("trainings.resmlp.clip", INFINITY, ["trainings.resmlp.clip is inf", "number"]),
        ("trainings.resmlp.steps", 1.5, ["trainings.resmlp.steps is 1.5", "integer"]),
        ("trainings.resnet.channels_last", "yes", ["trainings.resnet.channels_last is 'yes'", "boolean"]),
        ("trainings.resmlp.schedule.name", "step", ["'step'", "constant, linear, cosine"]),
        ("trainings.other", {"batch": 1}, ["trainings.other lacks the key 'optimiser'"]),
        ("nets.resmlp.norm", "batch", ["nets.resmlp.norm is 'batch'", "accepted: rms, layer"]),
        ("nets.resnet_bn.norm", "layer", ["nets.resnet_bn.norm is 'layer'", "accepted: batch, group, rms"]),
        ("nets.resmlp.post_norm", True, ["'post_norm' in 'nets.resmlp' is not known", "bias, eps, family, gain, norm"]),
        ("nets.resnet_bn.bias", True, ["'bias' in 'nets.resnet_bn' is not known", "post_norm"]),
        ("nets.resnet_bn.weights", "a.pth", ["'weights' in 'nets.resnet_bn' is not known"]),
        ("nets.resmlp", {"family": "timm"}, ["nets.resmlp lacks the key 'model'"]),
        ("nets.resmlp", {"family": "timm", "model": "resnet18", "norm": "batch"}, ["'norm'", "family, model, weights"]),
        ("nets.resmlp", {"family": "timm", "model": "resnet18", "weights": "a.bin"}, ["'a.bin'", "safetensors|pth|pt"]),
        ("nets.resmlp", {"family": "timm", "model": "resnet18"}, ["resmlp is for pictures", "[40]"]),
        ("nets.resmlp", {"norm": "rms"}, ["nets.resmlp lacks the key 'family'"]),
        ("grid.1.zip.depth", [4], ["grid: depth 4 of resnet_bn", "multiples of 3"]),
        ("trainings.resmlp.steps", -1, ["trainings.resmlp.steps is -1", "at least 0"]),
        ("nets.resmlp.family", "vgg", ["nets.resmlp.family is 'vgg'", "resmlp", "resnet"]),
        ("nets.a/b", {"family": "resmlp"}, ["nets has the name 'a/b'"]),
        ("nets.depth=1", {"family": "resmlp"}, ["nets has the name 'depth=1'"]),
        ("nets.1", {"family": "resmlp"}, ["nets has the name 1"]),
        ("device", "gpu", ["device", "'gpu'", "auto|cpu|cuda"]),
        ("results", "", ["results"]),
        ("results", "out/{x}", ["results", "{x}"]),
        ("results", ["out"], ["results is ['out']", "string"]),
        ("datasets", "nowhere.yaml", ["nowhere.yaml", "no such file"]),
        ("datasets", "config", ["config", "cannot be read"]),
        ("datasets", "README.md", ["README.md"]),
        ("claims", "config/datasets.yaml", ["config/datasets.yaml", "in 'cifar10' is not known"]),
        ("grid.0.dataset", "imagenet21k", ["dataset 'imagenet21k' is not defined", "mnist1d"]),
        ("grid.0.arch", "resnext", ["arch 'resnext' is not defined", "resmlp"]),
        ("grid.0.training", "fast", ["training 'fast' is not defined", "resmlp"]),
        ("grid.0.product.samples", [40001], ["samples 40001 of mnist1d", "1 to 40000"]),
        ("grid.0.dataset", "mnist1d_shifted", ["mnist1d_shifted", "training split"]),
        ("grid.0.zip", {"depth": [1]}, ["grid[0]", "each of depth, width, samples once"]),
        ("grid.0.product", {"depth": [1], "width": [1]}, ["grid[0]", "once"]),
        ("grid.0", BLOCK, ["grid[0]", "once"]),
        ("expansions.0.steps.lowest", 0.5, ["expansions[0].steps.lowest is 0.5", "less than highest, 0.1"]),
        ("expansions.0.steps.count", 1, ["expansions[0].steps.count is 1", "at least 2"]),
        ("expansions.0.scratch", [1.5], ["expansions[0].scratch[0] is 1.5", "at most 1"]),
        ("expansions.0.training", "fast", ["expansions[0].training is 'fast'", "not defined", "resmlp, resnet"]),
        ("expansions.0.reference", "begin", ["expansions[0].reference"]),
        ("trainings.resmlp.caps", {"spectral": 1.5}, ["trainings.resmlp.caps lacks the key 'frobenius'"]),
        ("trainings.resnet.caps", CAPS, ["trainings.resnet.caps does not cover resnet_bn", "without gain and bias"]),
        ("nets.resmlp.eps", 0, ["nets.resmlp.eps is 0; accepted: more than 0"]),
        ("expansions.0.reference", "loss_1", ["expansions[0] has checkpoint 'loss_1'", "best_validation, final"]),
        ("expansions.0.dataset", "mnist5k", ["expansions[0] is of mnist5k/resmlp, which the grid lacks"]),
        ("expansions.0.only", {"depth": [3]}, ["expansions[0].only is {'depth': [3]}, which no cell"]),
        ("certificates.0.delta", 0.5, ["certificates[0].delta is 0.5", "less than 0.3"]),
        ("certificates.0.losses", ["hinge"], ["certificates[0].losses[0] is 'hinge'", "brier, cross_entropy"]),
        ("expansions.0.keep_nets", False, ["certificates[0] has depth", "keeps no nets", "with keep_nets"]),
        ("expansions.0.splits.fresh", 10, ["expansions[0].splits.fresh is 10", "at least 40"]),
        ("expansions.0.splits.validation", 50, ["'validation' in 'expansions[0].splits' is not known"]),
    ],
)
def test_mistakes_are_refused_in_one_line(place: str, value: Any, parts: list[str]) -> None:
    """Each of these would else be ignored, end in a traceback in the middle of a run, or change what is computed."""
    config = changed(place, value)
    if place == "nets.1":
        config["nets"] = {1: value}
    text = refusal(config)
    assert all(part in text for part in parts), text


@pytest.mark.parametrize("switch", ["gain", "bias"])
def test_caps_are_for_nets_whose_leaves_they_all_cover(switch: str) -> None:
    config = changed("trainings.resmlp.caps", CAPS)
    load(config)
    config["nets"]["resmlp"][switch] = True
    assert "trainings.resmlp.caps does not cover resmlp; accepted: resmlp without gain and bias" in refusal(config)


@pytest.mark.parametrize("caps", [None, {"spectral": 1.5, "frobenius": 2.0}])
def test_an_expansion_keeps_the_caps_of_its_net(caps: dict[str, float] | None) -> None:
    """Other caps would project the old net to another one before its training begins."""
    config = changed("trainings.resmlp.caps", CAPS)
    config["trainings"]["other"] = config["trainings"]["resmlp"] | {"caps": dict(CAPS)}
    config["expansions"][0]["training"] = "other"
    load(config)
    config["trainings"]["other"].pop("caps")
    config["trainings"]["other"] |= {"caps": caps} if caps else {}
    text = refusal(config)
    assert f"expansions[0].training is 'other' with caps {caps}; accepted: those of trainings.resmlp, {CAPS}" in text


def test_widenings_have_no_caps_and_no_large_eps() -> None:
    """Projection would change the drawn weights, and a large eps weighs more in a wider stream."""
    config = changed("trainings.resmlp.caps", CAPS)
    config["widenings"] = [
        {"dataset": "mnist1d", "arch": "resmlp", "reference": "final", "training": "resmlp", "splits": {"test": 20}}
        | {"factor": 2}
    ]
    config["expansions"], config["certificates"] = [], []
    assert "widenings[0].training is 'resmlp', which has caps" in refusal(config)
    config["trainings"]["resmlp"].pop("caps")
    load(config)
    config["nets"]["resmlp"]["eps"] = 0.01
    assert "cannot be widened: eps weighs more in the norm of a wider stream" in refusal(config)


@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_a_config_that_is_no_mapping_is_refused(value: Any) -> None:
    """An empty file must not end in an AttributeError."""
    assert "object" in refusal(value)


def test_zip_of_unequal_lengths_is_refused() -> None:
    """Python's zip would drop the deepest net of the path without a word."""
    block = {**BLOCK, "zip": {"depth": [1, 2, 4], "width": [8, 16]}, "product": {"samples": [100]}}
    assert "{'depth': 3, 'width': 2}" in refusal(changed("grid.0", block))


def test_a_cell_described_differently_by_two_blocks_is_refused() -> None:
    """One of the two would win by chance of order, and its file be taken for the other's."""
    one = {**BLOCK, "product": {"depth": [1, 2], "width": [8], "samples": [100]}}
    same = {**BLOCK, "product": {"depth": [2], "width": [8, 16], "samples": [100]}}
    assert len(cells([one, same])) == 3
    for other in ({"seeds": [0, 1]}, {"training": "resnet"}):
        text = refusal(changed("grid", [one, same | other]))
        assert "grid[1]" in text
        assert "('mnist1d', 'resmlp', 2, 8, 100)" in text


@pytest.mark.parametrize("change", [{"normalise_as": "nothing"}, {"normalise_as": "mnist1d_shifted"}])
def test_data_without_moments_to_normalise_by_are_refused(tmp_path: Path, change: dict[str, str]) -> None:
    """Samples normalised by nothing, or by a set without training rows, would look like another law."""
    inventory = read_yaml(ROOT / "config" / "datasets.yaml")
    inventory["digits"] |= change
    path = tmp_path / "datasets.yaml"
    path.write_text(yaml.safe_dump(inventory))
    assert change["normalise_as"] in refusal(changed("datasets", str(path)))


@pytest.mark.parametrize("text", ["a: [1", "- 1\n", "", "a: \x00", "\tb: 1"])
def test_files_that_are_no_yaml_mapping_are_named(tmp_path: Path, text: str) -> None:
    """The parser's own message is many lines long and does not say which file."""
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match="broken") as caught:
        read_yaml(path)
    assert "\n" not in str(caught.value)


relaxed = settings(deadline=None)  # a busy machine is no defect
values = st.lists(st.integers(1, 10**6), min_size=1, max_size=4, unique=True)


@relaxed
@given(depths=values, widths=values, samples=values)
def test_a_product_gives_every_combination(depths: list[int], widths: list[int], samples: list[int]) -> None:
    """A grid that lacks a corner would be seen in a figure at best."""
    grid = cells([{**BLOCK, "product": {"depth": depths, "width": widths, "samples": samples}}])
    expected = {(depth, width, count) for depth in depths for width in widths for count in samples}
    assert {(cell.depth, cell.width, cell.samples) for cell in grid} == expected
    assert len(grid) == len(depths) * len(widths) * len(samples)
    costs = [cell.depth * cell.width**2 for cell in grid]
    assert costs == sorted(costs, reverse=True), "the longest jobs must not come last"


@relaxed
@given(pairs=st.lists(st.tuples(*[st.integers(1, 99)] * 3), min_size=1, max_size=6, unique=True), samples=values)
def test_a_zip_gives_its_tuples_alone_or_with_a_product(pairs: list[tuple[int, int, int]], samples: list[int]) -> None:
    """A joint path that became a full grid would cost its square."""
    together = {name: [pair[index] for pair in pairs] for index, name in enumerate(AXES)}
    assert {(one.depth, one.width, one.samples) for one in cells([{**BLOCK, "zip": together}])} == set(pairs)
    del together["samples"]
    both = cells([{**BLOCK, "zip": together, "product": {"samples": samples}}])
    expected = {(depth, width, count) for depth, width, _ in pairs for count in samples}
    assert {(one.depth, one.width, one.samples) for one in both} == expected
    assert len(both) == len(expected)


leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=3))
keys = st.sampled_from(["a", "b", "c", "d"])
configs = st.dictionaries(
    keys, st.recursive(leaves, lambda inner: st.dictionaries(keys, inner, max_size=3)), max_size=4
)


@relaxed
@given(base=configs, overlay=configs)
def test_overlays_merge_as_snakemake_merges_them(base: dict[str, Any], overlay: dict[str, Any]) -> None:
    """`make adopt` would hold copied results against another config than the run that follows it."""
    expected, before = copy.deepcopy(base), copy.deepcopy(base)
    update_config(expected, copy.deepcopy(overlay))
    assert merged(base, overlay) == expected
    assert base == before


def _rules(rule: Mapping[str, Any], place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All schemas below one, with their places."""
    yield place, rule
    inner = {**rule.get("properties", {})}
    inner |= {f"<{name}>": rule[name] for name in ("items", "additionalProperties") if isinstance(rule.get(name), dict)}
    for name, below in inner.items():
        yield from _rules(below, f"{place}.{name}")


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_key_is_described_and_no_other_accepted(name: str) -> None:
    """A key without a description is one that nobody can set; one that is not refused when misspelt is worse."""
    Draft202012Validator.check_schema(schema(name))
    for place, rule in _rules(schema(name), name):
        assert set(rule) <= KEYWORDS, f"{place}: {set(rule) - KEYWORDS} mean nothing (a comma in a flow mapping?)"
        if rule.get("type") == "object":
            assert "additionalProperties" in rule, place
        if "properties" in rule:
            assert rule["additionalProperties"] is False, place
        for key, below in rule.get("properties", {}).items():
            assert len(below.get("description", "")) > 5, f"{place}.{key}"


def test_schemas_agree_with_registries_and_rules() -> None:
    """A net that only the library has could not be used; one that only the schema has fails in the middle of a run."""
    nets = schema("config")["properties"]["nets"]["additionalProperties"]["properties"]
    assert set(nets["family"]["enum"]) == set(FAMILIES)
    cases = schema("config")["properties"]["nets"]["additionalProperties"]["allOf"]
    accepted = {one["if"]["properties"]["family"]["const"]: one["then"]["propertyNames"]["enum"] for one in cases}
    for family, module in FAMILIES.items():
        own = {one.name for one in fields(importlib.import_module(module).build)} - {one.name for one in fields(Net)}
        assert set(accepted.pop(family)) == {"family"} | own, family
    assert not accepted
    assert set(schema("datasets")["additionalProperties"]["properties"]["loader"]["enum"]) == set(LOADERS)
    rule = schema("claims")["additionalProperties"]["properties"]["rule"]
    assert set(rule["properties"]["kind"]["enum"]) == set(CLAIM_KINDS)
    text = "".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    asking = set(re.findall(r'\b(?:resource|gpus)\("(\w+)"', text))
    assert set(schema("config")["properties"]["resources"]["propertyNames"]["enum"]) == asking


def test_reference_page_is_up_to_date() -> None:
    """A page that lists other keys than are accepted sends its reader astray: `python -m ...reference` rewrites it."""
    assert (ROOT / "config" / "README.md").read_text(encoding="utf-8") == reference()
    rows = {line.split("`")[1] for line in reference().splitlines() if line.startswith("| `")}
    for key in ("nets.<name>.family", "grid[].zip.depth", "resources.<name>.threads", "<name>.splits.train"):
        assert key in rows


def test_digests_see_every_parameter() -> None:
    """A changed learning rate that left the digest as it was would leave the old results standing."""

    def digests(config: dict[str, Any]) -> dict[str, tuple[str, str]]:
        plan = Plan(load(config))
        return {one.path: plan.digests(one.rule, one.keys) for one in plan.artefacts() if one.rule == "train_baseline"}

    before = digests(BASE)
    for place in ("trainings.resmlp.optimiser.lr", "trainings.resmlp.clip", "nets.resmlp.gain", "nets.resmlp.bias"):
        after = digests(changed(place, True if "nets" in place else 0.5))
        differing = {path for path in before if before[path] != after[path]}
        assert differing == {path for path in before if "/resmlp/" in path}, place
    assert digests(changed("logs", "elsewhere")) == before


def test_params_are_plain_json() -> None:
    """What does not survive JSON reaches the stage as something else than the digest was taken of."""
    plan = Plan(load(BASE))
    for one in plan.artefacts():
        params = plan.params(one.rule, one.keys)
        assert json.loads(json.dumps(params, allow_nan=False)) == params
    with pytest.raises(InputError, match="not in the config's grid"):
        plan.params("train_baseline", {**BLOCK, "depth": 7, "width": 7, "samples": 7})
    with pytest.raises(InputError, match="'train' is not known"):
        plan.params("train", {})


def test_a_file_of_weights_is_told_by_its_content(tmp_path: Path) -> None:
    """The same weights elsewhere on another machine are the same net: a path in the digest would make two of them. A
    file that is not there is refused before any job."""
    config = changed("nets.resnet_bn", {"family": "timm", "model": "resnet18"})
    with_weights = changed("nets.resnet_bn", {**config["nets"]["resnet_bn"], "weights": str(tmp_path / "a.pth")})
    plain, plan = (Plan(load(one)) for one in (config, with_weights))
    for rule in ("train_baseline", "measure_gradients"):
        for cell in plan.cells("train_baseline"):
            keys = cell.as_json()
            assert plan.digests(rule, keys) == plain.digests(rule, keys)
            assert plan.weights(keys) == ([str(tmp_path / "a.pth")] if cell.arch == "resnet_bn" else [])
    folders = {name: str(tmp_path / name) for name in ("results", "figures", "logs")}
    with pytest.raises(InputError, match=r"nets.resnet_bn.weights is '.*a.pth': no such file"):
        open_run(with_weights | folders, ROOT)
    (tmp_path / "a.pth").touch()
    open_run(with_weights | folders, ROOT)


def test_a_run_is_opened_for_its_own_checkout_only(tmp_path: Path) -> None:
    """Edits in one checkout and code of another give results that neither explains."""
    with pytest.raises(InputError, match=re.escape(f"not from {tmp_path.resolve()}")):
        open_run(BASE, tmp_path)
    (tmp_path / "link").symlink_to(ROOT)
    folders = {name: str(tmp_path / name) for name in ("results", "figures", "logs")}
    assert open_run(BASE | folders, tmp_path / "link").experiments()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link"]


@pytest.mark.parametrize("name", ["results", "figures", "logs"])
def test_folders_that_cannot_be_written_are_refused(tmp_path: Path, name: str) -> None:
    """Said after an hour of training it would be an hour late."""
    (tmp_path / "file").write_text("")
    folders = {one: str(tmp_path / one) for one in ("results", "figures", "logs")}
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/dev/null/below")):
        with pytest.raises(InputError, match=f"{name} is '{place}', which cannot be written"):
            open_run(BASE | folders | {name: str(place)}, ROOT)


def _pins(lines: list[str]) -> dict[str, str]:
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_there_is_one_set_of_pins() -> None:
    """Conda users, pip users and the tests must not run three different torches."""
    lock = _pins([line.split(";")[0].strip() for line in (ROOT / "requirements.lock").read_text().splitlines()])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [pin for group in project["optional-dependencies"].values() for pin in group]
    for name, version in _pins([*project["dependencies"], *extras]).items():
        assert lock.get(name) == version, name
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip = (one for one in environment["dependencies"] if isinstance(one, str))
    assert pip == "pip"
    assert f">={python.removeprefix('python=')}" in project["requires-python"]
    (from_pip,) = (one["pip"] for one in environment["dependencies"] if isinstance(one, dict))
    assert from_pip == ["-r requirements.lock", "-e ."]


def test_claims_speak_of_what_the_config_has() -> None:
    """A claim on a net that no config has would stay `not evaluated` for ever, unnoticed."""
    for claim in read_yaml(ROOT / "config" / "claims.yaml").values():
        for net in claim["evaluated_on"]:
            assert net["arch"] in DEFAULT["nets"], net
            assert net["dataset"] in read_yaml(ROOT / "config" / "datasets.yaml"), net
