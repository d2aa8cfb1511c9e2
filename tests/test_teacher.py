"""The data set `teacher`: certificates and power laws rest on its Bayes risk and on the bound on its inputs, so that
its rows must have the law that the card speaks of."""

import json
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from scipy import stats
from torch.distributions import Categorical

from jumpboard.artefacts.job import parse
from jumpboard.artefacts.tables import read_table
from jumpboard.configuration.inventory import card_params, row_params
from jumpboard.configuration.validation import checkout
from jumpboard.data import teacher
from jumpboard.data.draw import draw_fresh, draw_rows
from jumpboard.errors import InputError
from jumpboard.nets.base import forward
from jumpboard.nets.resmlp import ResMLP
from jumpboard.schemas.card import CARD
from jumpboard.stages import describe_dataset, prepare_dataset

ENTRY: dict[str, Any] = yaml.safe_load((checkout() / "config" / "datasets.yaml").read_text())["teacher"]
WIDER = ENTRY | {"shape": [5], "classes": 4, "options": ENTRY["options"] | {"width": 3, "depth": 1, "radius": 4.2}}


def logits(spec: dict[str, Any], x: np.ndarray) -> torch.Tensor:
    """Of the teacher as a net of the library, [n, classes] float64."""
    options, weights = spec["options"], [torch.from_numpy(one)[None] for one in teacher.weights(spec)]
    net = ResMLP(options["depth"], options["width"], tuple(spec["shape"]), spec["classes"], eps=0.01)
    leaves = dict(zip(net.parameter_shapes(), weights, strict=True))
    return forward(net, leaves, torch.from_numpy(x).double()[None])[0]


@pytest.mark.parametrize("spec", [ENTRY, WIDER], ids=["default", "wider"])
def test_the_teacher_is_a_net_of_the_library(spec: dict[str, Any]) -> None:
    """Else no student could attain the Bayes risk, and a power law would have another limit."""
    x = teacher.draw(spec, 500, 3).x
    wanted = torch.softmax(logits(spec, x), -1).numpy()
    np.testing.assert_allclose(teacher.probabilities(teacher.weights(spec), x.astype(np.float64)), wanted, atol=1e-12)


def test_more_rows_leave_the_first_ones() -> None:
    """A larger number of fresh samples must extend a measurement, not replace it, across the edges of chunks too."""
    many = teacher.draw(ENTRY, teacher.ROWS + 700, 5)
    for count in (1, 300, teacher.ROWS - 1, teacher.ROWS, teacher.ROWS + 1):
        few = teacher.draw(ENTRY, count, 5)
        np.testing.assert_array_equal(few.x, many.x[:count])
        np.testing.assert_array_equal(few.y, many.y[:count])
    assert len(np.unique(many.x, axis=0)) == len(many)


def test_seeds_and_splits_share_no_row() -> None:
    """Test and fresh samples that were trained on would make every bound hold."""
    small = ENTRY | {"splits": {"train": 3000, "validation": 500, "test": 3000}, "fresh": {"seed": 2, "samples": 3000}}
    parts = [*draw_rows(small).values(), draw_fresh(small)]
    together = np.concatenate([part.x for part in parts])
    assert len(np.unique(together, axis=0)) == len(together) == 9500


@pytest.mark.parametrize("spec", [ENTRY, WIDER], ids=["default", "wider"])
def test_inputs_are_gaussian_within_the_radius(spec: dict[str, Any]) -> None:
    """The bound holds for norms up to the radius, without exception; the law within is the Gaussian's."""
    radius, inputs = spec["options"]["radius"], spec["shape"][0]
    norms = np.linalg.norm(teacher.draw(spec, 200_000, 7).x.astype(np.float64), axis=1)
    assert norms.max() <= radius
    inside = stats.chi(inputs).cdf(radius)
    assert teacher.within(radius, inputs) == pytest.approx(inside)
    assert inside >= 0.99
    assert stats.kstest(norms, lambda r: stats.chi(inputs).cdf(r) / inside).pvalue > 1e-3


def test_a_radius_that_cuts_is_obeyed_and_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small radius is refused; how rows are drawn does not depend on that."""
    narrow = ENTRY | {"options": ENTRY["options"] | {"radius": 1.0}}
    with pytest.raises(InputError, match=r"radius 1.0 holds 0.19\d\d of all inputs; accepted: .*0.99"):
        teacher.draw(narrow, 10, 1)
    monkeypatch.setattr(teacher, "LEAST", 0.0)
    x = teacher.draw(narrow, 3000, 1).x.astype(np.float64)
    assert np.linalg.norm(x, axis=1).max() <= 1.0
    assert stats.kstest(np.linalg.norm(x, axis=1), lambda r: stats.chi(3).cdf(r) / stats.chi(3).cdf(1)).pvalue > 1e-3


@pytest.mark.parametrize("spec", [ENTRY, WIDER], ids=["default", "wider"])
def test_labels_have_the_law_of_the_teacher(spec: dict[str, Any]) -> None:
    """Chi-square of label counts in bins of the teacher's own probabilities; labels of another row's law must fail."""
    rows = teacher.draw(spec, 100_000, 11)
    p = torch.softmax(logits(spec, rows.x), -1).numpy()

    def p_value(y: np.ndarray) -> float:
        statistic, bins = 0.0, np.digitize(p[:, 0], np.quantile(p[:, 0], np.linspace(0.1, 0.9, 9)))
        for one in range(10):
            expected = p[bins == one].sum(axis=0)
            counted = np.bincount(y[bins == one], minlength=spec["classes"])
            variance = (p * (1 - p))[bins == one].sum(axis=0)
            statistic += float(((counted - expected)[:-1] ** 2 / variance[:-1]).sum())
        return float(stats.chi2(10 * (spec["classes"] - 1)).sf(statistic))

    assert p_value(rows.y) > 1e-4  # counts of two classes are dependent: the law is near chi-square, not exactly it
    assert p_value(np.roll(rows.y, 1)) < 1e-30


@pytest.mark.parametrize("spec", [ENTRY, WIDER], ids=["default", "wider"])
def test_the_bayes_risk_is_that_of_an_independent_simulation(spec: dict[str, Any]) -> None:
    """With other inputs, in torch, and from drawn labels as nets are judged by."""
    known = teacher.population(spec)
    rows = teacher.draw(spec, 200_000, 23)
    law = Categorical(logits=logits(spec, rows.x))
    entropy, brier = law.entropy(), 1 - law.probs.square().sum(-1)
    drawn = -law.log_prob(torch.from_numpy(rows.y))
    for found, name in ((entropy, "bayes_risk"), (drawn, "bayes_risk"), (brier, "bayes_risk_brier")):
        error = np.hypot(float(found.std()) / np.sqrt(len(rows)), known["bayes_risk_se"])
        assert abs(float(found.mean()) - known[name]) < 4 * error
    assert known["bayes_risk_se"] == pytest.approx(float(entropy.std()) / np.sqrt(teacher.SAMPLES), rel=0.02)
    assert 0 < known["bayes_risk_brier"] < 1 - 1 / spec["classes"]


def test_the_default_sizes_let_the_bound_say_something() -> None:
    """The numbers in config/config.yaml: what the routes add, 2 eps_M and 2 (eps_M + eps_K), is less than the Brier gap
    between a constant and the teacher. Whoever changes a size or a cap must do that arithmetic again."""
    config = yaml.safe_load((checkout() / "config" / "config.yaml").read_text())
    caps = config["trainings"]["teacher"]["caps"]
    s, radius, norm = caps["spectral"], ENTRY["options"]["radius"], config["nets"]["resmlp_capped"]["eps"] ** -0.5
    largest = s * radius * norm * norm * (1 + s**2) * (1 + s**2)

    def eps(n: int) -> float:
        log = np.log(2 * caps["frobenius"] * 4 * np.sqrt(2) * largest * np.sqrt(n) + 1)
        rademacher = 2 * np.sqrt(2 * 54 * log / n) + 1 / np.sqrt(n)
        return float(2 * rademacher + 6 * np.sqrt(np.log(4 / 0.05) / (2 * n)))

    law = teacher.probabilities(teacher.weights(ENTRY), np.random.default_rng(0).standard_normal((100_000, 3))).mean(0)
    gap = 1 - float(np.square(law).sum()) - teacher.population(ENTRY)["bayes_risk_brier"]
    eps_m, eps_k = eps(ENTRY["splits"]["train"]), eps(ENTRY["splits"]["test"])
    assert (round(2 * eps_m, 3), round(2 * (eps_m + eps_k), 3), round(gap, 2)) == (0.229, 0.494, 0.56)
    assert max(float(np.linalg.norm(one, 2)) for one in teacher.weights(ENTRY)) < s


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"options": {"radius": 4.0}}, "lacks the option 'width'; accepted: all of radius, width, depth"),
        ({"shape": [1, 3, 3]}, r"shape is \[1, 3, 3\]; accepted: that of a vector"),
    ],
)
def test_bad_entries_are_refused(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        draw_rows(ENTRY | {"splits": {"train": 10}} | changes)


def test_the_card_states_the_law(tmp_path: Any) -> None:
    """The columns that fits and certificates read; a set whose law is not known has none of them."""
    entry = ENTRY | {"splits": {"train": 300, "test": 100}}
    root, code = tmp_path / "results", ["--code", "c0de"]
    splits, card = root / "splits.parquet", root / "card.parquet"
    params = json.dumps({"dataset": "teacher", **row_params(entry)})
    prepare_dataset.body(
        parse("prepare_dataset", ["--root", str(root), "--params", params, *code, "--outputs", f"splits={splits}"])
    )
    params = json.dumps({"dataset": "teacher", **card_params(entry)})
    places = ["--inputs", f"splits={splits}", "--outputs", f"card={card}"]
    describe_dataset.body(parse("describe_dataset", ["--root", str(root), "--params", params, *code, *places]))
    rows = read_table(card, CARD).to_pylist()
    known = teacher.population(entry)
    assert {row["split"]: row["count"] for row in rows} == {"train": 300, "test": 100}
    assert all(row[name] == value for row in rows for name, value in known.items())
    assert known["input_radius"] == 4.0
