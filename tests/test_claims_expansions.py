"""Gains of expansions are small and stand beside controls that share their noise: a rule that takes luck, a curved step
or a fallback for an effect would be published as support of the paper."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from jumpboard.artefacts.job import Job
from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import read_table, write_table
from jumpboard.claims import beats_training_on, descent_direction, first_order_prediction
from jumpboard.claims.controls import PERMUTATIONS
from jumpboard.claims.expansion_values import of_expansion, of_jumpboard, of_step_gains, of_widening
from jumpboard.claims.first_order_prediction import prediction_scores
from jumpboard.claims.ledger import evaluate
from jumpboard.claims.observations import Observations
from jumpboard.claims.readme_table import readme_table
from jumpboard.claims.run_values import run_values
from jumpboard.claims.statistics import holm
from jumpboard.errors import InputError
from jumpboard.schemas.claims import CLAIMS
from jumpboard.schemas.metrics import METRICS
from jumpboard.stages import evaluate_claims
from planted_expansions import NET, SCHEMAS, blank, expansions, jumpboards, nets, planted, step_gains, widenings

LEDGER: dict[str, Any] = yaml.safe_load((Path(__file__).parents[1] / "config/claims.yaml").read_text())
ENTRIES = {
    claim: entry for claim, entry in LEDGER.items() if entry["tables"][0] in SCHEMAS and "betas" not in entry["tables"]
}
DEPTHS, WIDTHS, SEEDS, SAMPLES = (1, 2, 4), (8, 16), (0, 1, 2, 3), 4000

Rows = list[dict[str, Any]]
Tables = dict[str, Rows]
Fill = Callable[[dict[str, Any]], Any]


def runs(depths: tuple[int, ...] = DEPTHS, seeds: tuple[int, ...] = SEEDS) -> Rows:
    return list(nets(depths, WIDTHS, SAMPLES, seeds))


def grid(depths: tuple[int, ...] = DEPTHS, seeds: tuple[int, ...] = SEEDS) -> Rows:
    cell = {**NET, "samples": SAMPLES, "seeds": list(seeds), "reference": "best_validation"}
    return [cell | {"depth": depth, "width": width} for depth in depths for width in WIDTHS]


def judged(claim: str, rows: Rows, cells: Rows | None = None, metrics: Rows | None = None) -> dict[str, Any]:
    """The one row of a claim on the planted net."""
    entry = ENTRIES[claim] | {"evaluated_on": [NET | {"split": ENTRIES[claim]["evaluated_on"][0]["split"]}]}
    tables = {entry["tables"][0]: rows, "metrics": metrics or []}
    (row,) = evaluate({claim: entry}, {entry["tables"][0]: cells or grid()}, tables)
    return row


def without(rows: Rows, **labels: Any) -> Rows:
    return [row for row in rows if any(row[key] != value for key, value in labels.items())]


def changed(rows: Rows, fill: Fill, **labels: Any) -> Rows:
    """Rows with these labels as `fill` makes them."""
    return [row | fill(row) if all(row[key] == one for key, one in labels.items()) else row for row in rows]


WHOLE: dict[str, Rows] = {
    "descent_direction": jumpboards(runs()),
    "first_order_prediction": step_gains(runs()),
    "fallback": expansions(runs()),
    "expansion_beats_training_on": expansions(runs()),
    "widening_beats_training_on": widenings(runs()),
}


# From rows of sites and arms to one number per run


def test_holm_rejects_what_a_textbook_example_does() -> None:
    """0.01, 0.02, 0.03, 0.04 at 0.05: 0.01 <= 0.05/4, 0.02 > 0.05/3, and no further."""
    assert holm([0.02, 0.01, 0.04, 0.03], 0.05).tolist() == [False, True, False, False]
    assert holm([0.012, 0.01, 0.02, 0.05], 0.05).tolist() == [True, True, True, True]
    assert holm([0.05], 0.05).tolist() == [True]
    assert holm([0.5, 0.001], 0.05).tolist() == [False, True]


def test_holm_keeps_false_rejections_of_a_net_at_its_level() -> None:
    p = np.random.default_rng(1).uniform(size=(4000, 9))
    share = np.mean([holm(one, 0.05).any() for one in p])
    assert share == pytest.approx(0.049, abs=3 * (0.049 / 4000) ** 0.5)


def sites_of(gains: list[float], direction: str = "steepest", kind: str = "train") -> Rows:
    run = {**NET, "depth": len(gains) - 1, "width": 8, "samples": SAMPLES, "seed": 0}
    key = run | {"direction": direction, "jumpboard": kind, "split": "test", "gain_se": 1.0, "n": 10000}
    return [key | {"site": site, "gain": gain, "bernstein_low": gain - 3} for site, gain in enumerate(gains)]


def test_a_net_has_a_direction_where_one_site_stands_out_from_all_of_them() -> None:
    """t = 2.2 is beyond the 5 % point of one test (1.64), not of three (2.13) if it were 2.1."""
    assert of_jumpboard(sites_of([0.0, 2.2, 0.0]))["descends"] == 1
    assert of_jumpboard(sites_of([0.0, 2.1, 0.0]))["descends"] == 0
    assert of_jumpboard(sites_of([0.0, -9.0, 0.0]))["descends"] == 0, "the test is one-sided"
    values = of_jumpboard(sites_of([4.0, 0.0, 5.0]) + sites_of([0.0, 9.0, 0.0], "random"))
    assert values == {
        "descends": 1,
        "descending_sites": pytest.approx(2 / 3),
        "bernstein_descends": 1,
        "random_descends": 1,
        "orthogonal_descends": None,
        "shuffled_descends": None,
    }
    population = sites_of([9.0, 9.0], kind="population")
    assert of_jumpboard(sites_of([0.0, 0.0]) + population)["descends"] == 0, "only the direction of training samples"
    same = [row | {"gain": 0.0, "gain_se": 0.0} for row in sites_of([0.0, 0.0])]
    assert of_jumpboard(same)["descends"] == 0, "a step that changes nothing gains nothing"


def steps_of(*steps: list[tuple[float, float, float]]) -> Rows:
    """(predicted, realised, error) by step and site."""
    run = {**NET, "depth": len(steps[0]) - 1, "width": 8, "samples": SAMPLES, "seed": 0}
    return [
        run
        | {"jumpboard": "train", "split": "test", "step": step, "site": site}
        | {"predicted_gain": predicted, "gain": gain, "gain_se": error}
        for step, sites in enumerate(steps)
        for site, (predicted, gain, error) in enumerate(sites)
    ]


def test_predictions_are_read_at_the_smallest_step_where_it_is_resolved() -> None:
    """A site that is resolved later only is one where curvature has taken over."""
    first, later = [(1.0, 1.0, 0.4), (2.0, 2.4, 1.0), (1.0, 1.9, 1.0)], [(9.0, -9.0, 1.0)] * 3
    values = of_step_gains(steps_of(first, later))
    assert values == {"predicted_gain": (1, 2), "realised_gain": (1, 2.4), "resolved_sites": pytest.approx(2 / 3)}
    none = of_step_gains(steps_of([(1.0, 1.9, 1.0)] * 3, later))
    assert none == {"predicted_gain": (), "realised_gain": (), "resolved_sites": 0}


def test_scores_of_predictions_are_those_computed_by_hand() -> None:
    """One seed of three nets with 2, 3 and no sites; units of a net do not matter."""
    nan = np.nan
    predicted = np.array([[[1.0, 2.0, nan], [1.0, -1.0, 1.0], [nan] * 3]]) * [[[1], [1000], [1]]]
    realised = np.array([[[1.0, 2.4, nan], [3.0, -3.0, -3.0], [nan] * 3]]) * [[[1], [1000], [1]]]
    agreement, slope, between = prediction_scores(predicted, realised)
    assert agreement == pytest.approx((1 + 2 / 3) / 2)
    assert slope == pytest.approx(((1 + 4.8) / 5 + (3 + 3 - 3) / 3) / 2)
    # about the means: net 1 over its RMS^2 of 2.5: p (-.5, .5), g (-.7, .7); net 2 p (2, -4, 2)/3, g (4, -2, -2)
    assert between == pytest.approx((0.7 / 2.5 + (8 + 8 - 4) / 3) / (0.5 / 2.5 + 24 / 9))
    assert [float(one[0]) for one in prediction_scores(predicted[:, 2:], realised[:, 2:])] == [0, 0, 0]
    same = np.ones((1, 2, 3))
    assert [float(one[0]) for one in prediction_scores(same, same)] == [1, 1, 0], "no difference between sites"


def test_predictions_change_places_within_a_net_and_nowhere_else() -> None:
    seen = predictions(1.0, np.random.default_rng(0))
    seen.columns["predicted_gain"][0, 0, 0, 0, 3:] = np.nan
    moved = first_order_prediction.permute_sites(seen, np.random.default_rng(0)).columns
    before, after = seen.columns["predicted_gain"], moved["predicted_gain"]
    assert not np.array_equal(before, after, equal_nan=True)
    np.testing.assert_array_equal(np.sort(before, axis=-1), np.sort(after, axis=-1))
    np.testing.assert_array_equal(np.isnan(before), np.isnan(after))
    assert moved["realised_gain"] is seen.columns["realised_gain"]


def test_arms_are_compared_on_the_sites_that_they_share() -> None:
    run = {**NET, "depth": 1, "width": 8, "samples": SAMPLES, "seed": 0, "status": "trained", "branch": "trained"}

    def row(arm: str, site: int, gain: float, kind: str = "train", erm: float | None = 0.1) -> dict[str, Any]:
        return run | {"arm": arm, "site": site, "gain": gain, "jumpboard": kind, "delta_erm": erm}

    rows = [row("jumpboard_all", 0, 0.3), row("jumpboard_all", 1, 0.5), row("trained_on", -1, 0.1, "none", None)]
    rows += [row("jumpboard_all", 0, 9.0, "population"), row("jumpboard_all", 1, 9.0, "population")]
    rows += [row("jumpboard_block", 0, 9.0), row("jumpboard_block", 1, 9.0) | {"branch": "jumpboard"}]
    expected = {"worse": 0, "trained_worse": 1 / 4, "over_training_on": 0.3, "over_scratch": 0, "scratch_sites": 0}
    assert of_expansion(rows) == pytest.approx(expected)
    scratch = row("scratch", 1, -0.2, "none", None)
    assert of_expansion([*rows, scratch]) == pytest.approx(expected | {"over_scratch": 0.7, "scratch_sites": 1})
    lost = scratch | {"status": "diverged", "gain": np.nan}
    assert of_expansion([*rows, lost]) == pytest.approx(expected), "a net from scratch that diverged does not count"
    assert of_expansion([row("jumpboard_all", 0, 0.3), row("jumpboard_all", 1, 0.5)])["over_training_on"] is None
    wide = [run | {"arm": arm, "gain": gain} for arm, gain in (("widened", 0.4), ("trained_on", 0.1), ("scratch", 0.2))]
    assert of_widening(wide) == pytest.approx({"over_training_on": 0.3, "over_scratch": 0.2, "scratch_sites": 1})


@pytest.mark.parametrize("fault", ["twice", "lacking"])
@pytest.mark.parametrize(
    ("claim", "place"),
    [
        ("descent_direction", {"direction": "random", "jumpboard": "train", "split": "test"}),
        ("first_order_prediction", {"step": 0, "jumpboard": "train", "split": "test"}),
        ("expansion_beats_training_on", {"arm": "jumpboard_all", "jumpboard": "train"}),
    ],
)
def test_a_run_with_a_site_too_few_or_too_many_is_refused(claim: str, place: dict[str, Any], fault: str) -> None:
    """A maximum or a mean over the sites that are left would pass for one over all."""
    place = place | {"depth": 4, "width": 8, "seed": 1, "site": 2}
    rows = WHOLE[claim]
    extra = [row for row in rows if place.items() <= row.items()]
    part = place.get("direction") or place.get("arm") or "smallest step"
    named = rf"checkpoint reference, depth 4, width 8, samples 4000, seed 1 \({part}\) has sites .*: 0 to 4, each once"
    with pytest.raises(InputError, match=named):
        judged(claim, without(rows, **place) if fault == "lacking" else rows + extra)


# Planted tables


@pytest.mark.parametrize(
    ("claim", "rows", "verdict"),
    [
        ("descent_direction", WHOLE["descent_direction"], "supported"),
        ("descent_direction", jumpboards(runs(), gain=-0.01), "contradicted"),
        ("descent_direction", jumpboards(runs(), control=0.002), "inconclusive"),
        ("first_order_prediction", WHOLE["first_order_prediction"], "supported"),
        ("first_order_prediction", step_gains(runs(), slope=0.3), "contradicted"),
        ("first_order_prediction", step_gains(runs(), slope=1.7), "contradicted"),
        ("first_order_prediction", step_gains(runs(), slope=-1.0), "contradicted"),
        ("first_order_prediction", step_gains(runs(), slope=0.8), "inconclusive"),
        ("first_order_prediction", step_gains(runs(), se=9.0), "inconclusive"),
        ("fallback", WHOLE["fallback"], "supported"),
        ("expansion_beats_training_on", WHOLE["expansion_beats_training_on"], "supported"),
        ("expansion_beats_training_on", expansions(runs(), trained_on=0.07), "contradicted"),
        ("expansion_beats_training_on", expansions(runs(), trained_on=0.05), "inconclusive"),
        ("widening_beats_training_on", WHOLE["widening_beats_training_on"], "supported"),
        ("widening_beats_training_on", widenings(runs(), trained_on=0.09), "contradicted"),
        ("widening_beats_training_on", widenings(runs(), trained_on=0.06), "inconclusive"),
    ],
)
def test_planted_tables_get_their_verdict(claim: str, rows: Rows, verdict: str) -> None:
    row = judged(claim, rows)
    assert (row["verdict"], row["missing"], row["checkpoint"]) == (verdict, "", "reference")
    assert verdict != "inconclusive" or row["reason"]
    assert row["configuration"] == (
        f"d/a, depths 1-4, widths 8-16, M = 4000, nets at best validation, {row['split']} split, 4 seeds"
    )


def test_a_direction_in_half_of_the_nets_settles_nothing_and_both_shares_are_told() -> None:
    """Width 8 has none; two of four seeds at depth 1 of the other width have none in the test either."""
    lost = {"gain": -0.1, "bernstein_low": -1.0}
    rows = changed(WHOLE["descent_direction"], lambda row: lost, width=8, direction="steepest")
    row = judged("descent_direction", rows)
    assert (row["verdict"], row["reason"], row["estimate"]) == ("inconclusive", "there is one in 50% of nets", 0.5)
    rows = changed(rows, lambda row: {"gain": 1.0}, width=8, direction="steepest", depth=1, seed=0)
    row = judged("descent_direction", rows)
    assert (row["verdict"], row["estimate"]) == ("supported", pytest.approx(13 / 24))
    told = dict(part.split(": ") for part in row["intervals"].split("; "))
    assert told["nets, at width 16"] == "1.000 [1.000, 1.000]"
    assert told["nets by the empirical Bernstein limit"].startswith("0.500")
    for direction in ("random", "orthogonal", "shuffled"):
        assert float(told[f"nets, {direction} direction"].split()[0]) <= 0.13
    assert float(told["nets, over control directions"].split()[0]) > 0.4
    assert row["control_share"] <= 0.1


def test_directions_that_descend_as_often_as_any_other_settle_nothing() -> None:
    """Half of all directions go down to first order: with enough samples a random one is resolved too. Where it is in
    as many nets as the steepest, what training samples say of held-out ones is nothing."""
    rows = [row | {"gain": 1.0} for row in WHOLE["descent_direction"]]
    row = judged("descent_direction", rows)
    assert (row["verdict"], row["estimate"]) == ("inconclusive", 1.0)
    assert row["reason"] == "no more often than along control directions"
    rows = changed(rows, lambda row: {"gain": -1.0}, direction="random")
    rows = changed(rows, lambda row: {"gain": -1.0}, direction="shuffled")
    row = judged("descent_direction", rows)
    assert (row["verdict"], row["control_share"] <= 0.1) == ("supported", True)


def test_gains_of_controls_take_nothing_from_no_net_has_one() -> None:
    rows = [row | {"gain": -1.0 if row["direction"] == "steepest" else 1.0} for row in WHOLE["descent_direction"]]
    row = judged("descent_direction", rows)
    assert row["verdict"] == "contradicted"


def test_predictions_that_are_alike_at_all_sites_say_nothing_about_a_site() -> None:
    """Any permutation of them would do as well."""
    rows = [row | {"predicted_gain": 1.0, "gain": 1.0, "gain_se": 0.1} for row in WHOLE["first_order_prediction"]]
    row = judged("first_order_prediction", rows)
    assert (row["verdict"], row["estimate"]) == ("inconclusive", 1)
    assert row["reason"] == "the slope between sites is not resolved within [0.9, 1.1]"


def test_two_sites_in_one_net_are_as_good_in_any_order() -> None:
    """Three seeds: both orders of each, so that one permuted table in eight is the table itself."""
    gain = np.broadcast_to([1.0, 2.0], (3, 1, 1, 1, 2))
    columns = {"predicted_gain": gain, "realised_gain": gain, "resolved_sites": np.ones((3, 1, 1, 1))}
    seen = Observations((1,), (8,), (SAMPLES,), (0, 1, 2), columns, ())
    assert first_order_prediction.judge(seen).verdict == "supported"
    null = first_order_prediction.null(seen, "any", "supported")
    assert null.share == pytest.approx(1 / 8, abs=0.07)
    assert null.meaning == "of 200 permutations are called supported"


def test_nets_without_a_resolved_gain_do_not_count_but_a_seed_without_any_does() -> None:
    lost = {"gain_se": 9.0}
    some = changed(WHOLE["first_order_prediction"], lambda row: lost, depth=1)
    row = judged("first_order_prediction", some)
    assert row["verdict"] == "supported"
    assert "share of sites resolved: 0.667" in row["intervals"]
    row = judged("first_order_prediction", changed(some, lambda row: lost, seed=2))
    assert (row["verdict"], row["reason"]) == ("inconclusive", "in some seed no gain is resolved at any site")
    assert row["estimate"] == pytest.approx(1, abs=0.05), "the other seeds' slope, not a 0 in its mean"


def test_one_expansion_that_is_worse_by_any_amount_contradicts_the_fallback() -> None:
    label = {"arm": "zero_block", "jumpboard": "train", "site": 2, "depth": 4, "width": 8, "seed": 3}
    for loss in (-1e-300, float("nan")):
        row = judged("fallback", changed(WHOLE["fallback"], lambda row, loss=loss: {"delta_erm": loss}, **label))
        assert (row["verdict"], row["reason"]) == ("contradicted", "in 1 expansion")
    row = judged("fallback", WHOLE["fallback"])
    assert row["split"] == "train"
    assert row["control_share"] == pytest.approx(1 / 15), "one site of five at depth 4; no other has a fifth site"
    assert "share where training alone was worse: 0.067" in row["intervals"]


def test_training_alone_that_always_ends_worse_withdraws_nothing() -> None:
    rows = [row | ({"branch": "jumpboard"} if row["jumpboard"] != "none" else {}) for row in WHOLE["fallback"]]
    row = judged("fallback", rows)
    assert (row["verdict"], row["control_share"]) == ("supported", 1)


def test_the_difference_is_that_of_the_arms_and_nets_from_scratch_stand_beside_it() -> None:
    row = judged("expansion_beats_training_on", expansions(runs(), sd=0))
    assert row["estimate"] == pytest.approx(0.02 * 3.5)  # log2 of widths 8 and 16
    assert "over a net from scratch: 0.525" in row["intervals"]
    plain = [row for row in expansions(runs(), sd=0) if row["arm"] != "scratch"]
    assert "scratch" not in judged("expansion_beats_training_on", plain)["intervals"]


def test_exchanged_arms_share_what_a_net_has_and_forget_who_was_expanded() -> None:
    gain = np.random.default_rng(0).normal(1, 0.1, (4, 3, 2, 1))
    seen = difference(gain)
    flipped = beats_training_on.exchange_arms(seen, np.random.default_rng(0)).columns
    np.testing.assert_array_equal(np.abs(flipped["over_training_on"]), gain)
    assert 0.2 < (flipped["over_training_on"] > 0).mean() < 0.8
    np.testing.assert_array_equal(flipped["scratch_sites"], seen.columns["scratch_sites"])


def test_the_control_fires_where_signs_of_three_runs_are_all_there_is() -> None:
    """One net, three seeds: exchanged arms look as decided in 1 case of 8."""
    null = beats_training_on.null(difference(np.full((3, 1, 1, 1), 1.0)), "any", "supported")
    assert null.share == pytest.approx(1 / 8, abs=0.07)
    assert null.share > null.tolerated or null.share * PERMUTATIONS < 21


# False verdicts and power


def difference(gain: Any) -> Observations:
    zeros = np.zeros_like(gain)
    columns = {"over_training_on": gain, "over_scratch": zeros, "scratch_sites": zeros}
    seeds, depths, widths, _ = gain.shape
    return Observations((1, 2, 4)[:depths], (8, 16)[:widths], (SAMPLES,), tuple(range(seeds)), columns, ())


@pytest.mark.parametrize("shape", [(4, 3, 2, 1), (3, 2, 1, 1)])
def test_arms_that_differ_by_luck_are_called_either_way_in_at_most_one_of_twenty_tables(
    shape: tuple[int, ...],
) -> None:
    generator, tables = np.random.default_rng(31), 1500
    called = []
    for _ in range(tables):
        luck = generator.normal(0, 0.02, (shape[0], 1, 1, 1)) + generator.normal(0, 0.02, shape)
        called.append(beats_training_on.judge(difference(luck)).verdict)
    bound = 0.05 + 3 * (0.05 * 0.95 / tables) ** 0.5
    assert called.count("supported") / tables < bound
    assert called.count("contradicted") / tables < bound


def test_a_gain_of_three_standard_deviations_is_found() -> None:
    generator, found = np.random.default_rng(32), []
    for _ in range(100):
        seen = difference(0.06 + generator.normal(0, 0.02, (4, 3, 2, 1)))
        share = beats_training_on.null(seen, "any", "supported")
        found.append(beats_training_on.judge(seen).verdict == "supported" and share.share <= share.tolerated)
    assert np.mean(found) > 0.9


def nets_of(t: Any) -> Observations:
    """Nets from t statistics of the steepest and three control directions, [direction, seed, depth, width, site]."""
    columns: dict[str, Any] = {}
    for name, values in zip(("steepest", "random", "orthogonal", "shuffled"), t, strict=True):
        found = np.empty(values.shape[:3])
        for place in np.ndindex(found.shape):
            rows = sites_of(values[place].tolist(), name) + (
                sites_of([0.0] * values.shape[3]) if name != "steepest" else []
            )
            found[place] = of_jumpboard(rows)["descends" if name == "steepest" else f"{name}_descends"]
        columns["descends" if name == "steepest" else f"{name}_descends"] = found[..., None]
    columns |= {"descending_sites": columns["descends"], "bernstein_descends": columns["descends"]}
    return Observations((1, 2, 4), (8, 16), (SAMPLES,), SEEDS, columns, ())


def verdict_of(seen: Observations, claim: str, rule: Any) -> str:
    ruling = rule.judge(seen)
    null = rule.null(seen, claim, ruling.verdict)
    return "inconclusive" if null.share > null.tolerated else ruling.verdict


def test_luck_is_never_called_a_descent_direction_and_one_in_every_net_mostly_is() -> None:
    """Sites of a net share half of their luck, as gains on the same samples do."""
    generator, tables = np.random.default_rng(33), 40
    called: dict[float, list[str]] = {0.0: [], 4.0: []}
    for size, verdicts in called.items():
        for _ in range(tables):
            luck = generator.normal(size=(4, 4, 3, 2, 1)) + generator.normal(size=(4, 4, 3, 2, 5))
            luck /= 2**0.5
            luck[0] += size
            verdicts.append(verdict_of(nets_of(luck), "any", descent_direction))
    assert called[0.0].count("supported") == 0
    assert called[4.0].count("contradicted") == 0
    assert called[4.0].count("supported") / tables > 0.95


def predictions(slope: float, generator: np.random.Generator, noise: float = 0.1) -> Observations:
    predicted = generator.uniform(0.2, 1.0, (4, 3, 2, 1, 5))
    realised = predicted * (slope + generator.normal(0, noise, predicted.shape))
    columns = {"predicted_gain": predicted, "realised_gain": realised, "resolved_sites": np.ones((4, 3, 2, 1))}
    return Observations((1, 2, 4), (8, 16), (SAMPLES,), SEEDS, columns, ())


@pytest.mark.parametrize(
    ("slope", "verdict"), [(0.9, "supported"), (1.1, "supported"), (0.5, "contradicted"), (1.5, "contradicted")]
)
def test_a_slope_at_the_edge_is_called_in_at_most_one_of_twenty_tables(slope: float, verdict: str) -> None:
    generator, tables = np.random.default_rng(34), 500
    called = [first_order_prediction.judge(predictions(slope, generator)).verdict for _ in range(tables)]
    assert called.count(verdict) / tables < 0.05 + 3 * (0.05 * 0.95 / tables) ** 0.5


def test_predictions_that_miss_by_a_thirtieth_are_supported() -> None:
    generator = np.random.default_rng(35)
    called = [verdict_of(predictions(1.0, generator, 0.03), "any", first_order_prediction) for _ in range(20)]
    assert called.count("supported") >= 19


# Runs that are not there


@pytest.mark.parametrize("claim", sorted(ENTRIES))
def test_a_removed_seed_and_a_removed_cell_are_named(claim: str) -> None:
    rows = without(without(WHOLE[claim], depth=2, width=8, seed=2), depth=4, width=16)
    row = judged(claim, rows)
    assert row["verdict"] == "not evaluated"
    assert row["missing"] == "depth 2, width 8, samples 4000, seed 2; depth 4, width 16, samples 4000"
    assert (row["estimate"], row["low"], row["control_share"], row["n"]) == (None, None, None, 0)


@pytest.mark.parametrize("claim", sorted(ENTRIES))
def test_a_seed_whose_training_diverged_is_told_from_one_that_is_missing(claim: str) -> None:
    lost = {"depth": 2, "width": 8, "seed": 2}
    diverged = blank(METRICS) | NET | lost | {"samples": SAMPLES, "checkpoint": "final", "status": "diverged"}
    row = judged(claim, without(WHOLE[claim], **lost), metrics=[diverged])
    assert (row["verdict"], row["missing"]) == (
        "not evaluated",
        "depth 2, width 8, samples 4000, seed 2 (diverged)",
    )


def test_an_arm_or_a_control_that_was_not_run_is_named() -> None:
    rows = without(WHOLE["descent_direction"], direction="shuffled", seed=1, depth=1, width=8)
    row = judged("descent_direction", rows)
    assert (row["verdict"], row["missing"]) == ("not evaluated", "depth 1, width 8, samples 4000, seed 1 (undefined)")
    for claim in ("expansion_beats_training_on", "widening_beats_training_on"):
        row = judged(claim, without(WHOLE[claim], arm="trained_on", seed=1, depth=1, width=8))
        assert row["missing"] == "depth 1, width 8, samples 4000, seed 1 (undefined)"
        nan = changed(WHOLE[claim], lambda row: {"gain": np.nan}, arm="trained_on", seed=1, depth=1, width=8)
        assert judged(claim, nan)["verdict"] == "not evaluated"


@pytest.mark.parametrize("claim", sorted(ENTRIES))
def test_too_small_a_grid_and_a_config_without_expansions_say_so(claim: str) -> None:
    if claim != "fallback":
        seeds = SEEDS[:2]
        few = [row for row in WHOLE[claim] if row["seed"] in seeds]
        row = judged(claim, few, grid(seeds=seeds))
        assert (row["verdict"], row["reason"]) == ("not evaluated", "the grid has 2 seeds of at least 3")
    (row,) = evaluate({claim: ENTRIES[claim] | {"evaluated_on": [NET]}}, {ENTRIES[claim]["tables"][0]: []}, {})
    assert (row["verdict"], row["reason"]) == ("not evaluated", "the config has no cells of d/a for it")
    assert row["checkpoint"] == "reference"


def test_nets_expanded_at_different_checkpoints_are_told() -> None:
    cells = [cell | ({"reference": "loss_0.5"} if cell["depth"] == 4 else {}) for cell in grid()]
    row = judged("fallback", WHOLE["fallback"], cells)
    assert ", nets at best validation and nets at training loss 0.5, " in row["configuration"]


# The whole ledger


def test_verdicts_depend_neither_on_the_order_of_rows_nor_on_the_names_of_seeds() -> None:
    for claim, rows in WHOLE.items():
        moved = [row | {"seed": row["seed"] + 100} for row in rows]
        random.Random(5).shuffle(moved)
        old, new = judged(claim, rows), judged(claim, moved, grid(seeds=tuple(seed + 100 for seed in SEEDS)))
        for column in ("verdict", "reason", "missing", "control_share"):
            assert new[column] == old[column], claim
        for column in ("estimate", "low", "high"):
            assert new[column] == pytest.approx(old[column], abs=1e-12), claim


def test_sample_sizes_are_judged_apart() -> None:
    other = [row | {"samples": 40000} for row in expansions(runs(), trained_on=0.09)]
    cells = [*grid(), *(cell | {"samples": 40000} for cell in grid())]
    entry = ENTRIES["expansion_beats_training_on"] | {"evaluated_on": [NET]}
    rows = evaluate({"c": entry}, {"expansion": cells}, {"expansion": [*WHOLE["fallback"], *other]})
    assert {row["samples"]: row["verdict"] for row in rows} == {4000: "supported", 40000: "contradicted"}


def test_runs_of_tables_without_checkpoint_stand_at_the_reference() -> None:
    found = run_values({"widening": WHOLE["widening_beats_training_on"]}, ["widening"], "test", None)
    assert {run[2] for run in found} == {"reference"}
    assert len(found) == len(DEPTHS) * len(WIDTHS) * len(SEEDS)


def test_the_stage_reads_tables_of_expansions_and_the_readme_shows_them(tmp_path: Path) -> None:
    """Cells that the config does not expand are not expected; the ledger's rows fit their schema."""
    tables = planted(DEPTHS, WIDTHS, SAMPLES, SEEDS)
    blocks = {
        "training": "t",
        "seeds": list(SEEDS),
        "product": {"depth": [1, 2, 4, 8], "width": [8, 16], "samples": [SAMPLES]},
    }
    chosen = [NET | {"only": {"depth": list(DEPTHS)}, "reference": "best_validation"}]
    config = {"grid": [NET | blocks], "expansions": chosen, "widenings": chosen, "chains": chosen}
    claims = {claim: entry | {"evaluated_on": [NET]} for claim, entry in ENTRIES.items()}
    (tmp_path / "config.json").write_text(json.dumps({"datasets": {}, "config": config, "claims": claims}))
    inputs = {"config": tmp_path / "config.json"}
    for name in ("jumpboard", "step_gains", "expansion", "widening"):
        inputs[f"{name}_0"] = tmp_path / f"{name}.parquet"
        write_table(
            inputs[f"{name}_0"], SCHEMAS[name], tables[name], Provenance("0", "0", {}, SEEDS, "bytes", 1, "cpu", {})
        )
    out = tmp_path / "claims.parquet"
    evaluate_claims.body(Job("evaluate_claims", tmp_path, {}, "0", 1, inputs, {"claims": out}))
    rows = read_table(out, CLAIMS).to_pylist()
    assert {row["claim"]: row["verdict"] for row in rows} == dict.fromkeys(ENTRIES, "supported")
    lines = [line for line in readme_table(rows).splitlines() if line.startswith("|")][2:]
    assert len(lines) == len(ENTRIES)
    (fallback,) = (line for line in lines if "**fallback**" in line)
    assert "(By construction: a check of the pipeline.) | d/a | 4,000 | reference, test | supported | 0.000" in fallback
