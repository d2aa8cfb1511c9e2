"""Claims on measured gradients are read off thousands of rows per net: a site, a split or a net that silently drops out
of them, or a noise that looks like a trend, would be published as a finding."""

import json
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from jumpboard.artefacts.job import Job
from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import Schema, read_table, write_table
from jumpboard.claims import near_diagonal, near_diagonal_draft, trend_in_depth
from jumpboard.claims.base import TOLERATED
from jumpboard.claims.controls import PERMUTATIONS, permute_depths
from jumpboard.claims.ledger import evaluate
from jumpboard.claims.observations import Observations
from jumpboard.claims.readme_table import readme_table
from jumpboard.claims.run_values import of_covariance, of_moments, of_signal, run_values, site_of
from jumpboard.errors import InputError
from jumpboard.figures.signal_trends import trends
from jumpboard.schemas.claims import CLAIMS
from jumpboard.schemas.covariance import COVARIANCE
from jumpboard.schemas.metrics import METRICS
from jumpboard.schemas.moments import MOMENTS
from jumpboard.schemas.signal import SIGNAL
from jumpboard.stages import evaluate_claims

LEDGER: dict[str, Any] = yaml.safe_load((Path(__file__).parents[1] / "config/claims.yaml").read_text())
ENTRIES = {claim: entry for claim, entry in LEDGER.items() if {"signal", "moments", "covariance"} & {*entry["tables"]}}
SCHEMAS = {schema.name: schema for schema in (METRICS, SIGNAL, MOMENTS, COVARIANCE)}
NET = {"dataset": "mnist1d", "arch": "resmlp"}
DEPTHS, WIDTHS, SEEDS, SAMPLES = (1, 2, 4, 8), (8, 16, 32), (0, 1, 2, 3), 4000
CHECKPOINTS, SPLITS = ("init", "loss_1", "final"), ("test", "train")
EMPTY = {"int64": 0, "float64": 0.0, "string": "", "bool": False}

Rows = list[dict[str, Any]]
Tables = dict[str, Rows]
Fill = Callable[..., dict[str, Any]]


def blank(schema: Schema) -> dict[str, Any]:
    return {column.name: EMPTY[column.type] for column in schema.columns}


def sites(schema: Schema, fill: Fill, depths: tuple[int, ...] = DEPTHS, seeds: tuple[int, ...] = SEEDS) -> Rows:
    """Rows of a measured table, `fill` says what differs from zero; whole rows, as a stage reads them."""
    rows = []
    for depth in depths:
        for width in WIDTHS:
            for seed in seeds:
                for checkpoint in CHECKPOINTS:
                    for split in SPLITS:
                        for site in range(depth + 1):
                            key = {**NET, "depth": depth, "width": width, "samples": SAMPLES, "seed": seed}
                            key |= {"checkpoint": checkpoint, "split": split, "site": site}
                            rows.append(blank(schema) | key | fill(**key))
    return rows


def grid(depths: tuple[int, ...] = DEPTHS, seeds: tuple[int, ...] = SEEDS) -> Rows:
    return [
        {**NET, "depth": depth, "width": width, "samples": SAMPLES, "seeds": list(seeds)}
        for depth in depths
        for width in WIDTHS
    ]


def signals(power: float, *, resolved: bool = True, sd: float = 0.02, size: float = 1.0) -> Rows:
    """Squared signals ~ depth^power at all sites, with luck of relative size `sd` shared by the sites of a run."""
    generator = np.random.default_rng(3)
    luck: dict[tuple[Any, ...], float] = {}

    def fill(**key: Any) -> dict[str, Any]:
        run = tuple(key[name] for name in ("depth", "width", "seed", "checkpoint", "split"))
        value = size * key["depth"] ** power * (1 + luck.setdefault(run, generator.normal(0, sd)))
        columns = {"signal_feature_sq": value, "feature_scale_free_sq": value / 10}
        return columns | {"signal_feature_sq_low": value / 2 if resolved else -value}

    return sites(SIGNAL, fill)


def energies(rho: float, *, sd: float = 0.02, null: float = 0.0) -> Tables:
    generator = np.random.default_rng(4)
    moments = sites(MOMENTS, lambda **key: {"rho_off": generator.normal(rho, sd), "rho_off_low": 0.0})
    return {"moments": moments, "covariance": sites(COVARIANCE, lambda **key: {"null_rho_off": null})}


def criteria(met: Callable[[int], bool], *, null: float = 0.0, variance: float = 1.0) -> Tables:
    """The draft's criterion met at the sites that `met` names."""

    def fill(**key: Any) -> dict[str, Any]:
        return {
            "diagonal_by_draft": met(key["site"]),
            "null_max_covariance": null,
            "mean_variance": variance,
        }

    return {"covariance": sites(COVARIANCE, fill)}


def judged(claim: str, tables: Tables, cells: Rows | None = None, **net: str) -> dict[str, dict[str, Any]]:
    """The rows of a claim on one split of the net, by checkpoint."""
    place = {"relative_site": "1/2"} if claim in ("signal_decay_raw", "signal_decay_scale_free") else {}
    entry = ENTRIES[claim] | {"evaluated_on": [NET | place | {"split": "test"} | net]}
    rows = evaluate({claim: entry}, dict.fromkeys(SCHEMAS, cells or grid()), tables)
    assert {row["split"] for row in rows} == {net.get("split", "test")}
    return {row["checkpoint"]: row for row in rows}


def without(rows: Rows, **labels: Any) -> Rows:
    return [row for row in rows if any(row[key] != value for key, value in labels.items())]


# From rows of sites to one number per run


def test_values_of_a_run_are_those_computed_by_hand() -> None:
    signal = [
        {"signal_feature_sq": 0.3, "signal_feature_sq_low": 0.1, "feature_scale_free_sq": 0.03},
        {"signal_feature_sq": -0.1, "signal_feature_sq_low": -0.4, "feature_scale_free_sq": -0.01},
        {"signal_feature_sq": 0.7, "signal_feature_sq_low": None, "feature_scale_free_sq": 0.07},
    ]
    assert of_signal(signal, 1, 3) == {
        "signal_raw": -0.1,
        "signal_raw_resolved": 0,
        "signal_scale_free": -0.01,
        "signal_scale_free_resolved": 0,
        "signal_max": 0.7,
        "signal_max_resolved": 0,  # no limits: not resolved
    }
    assert of_signal(signal[:2], None, 2) == {"signal_max": 0.3, "signal_max_resolved": 1}
    assert of_signal(signal, None, 2)["signal_max"] == pytest.approx((0.3 + 0.7 + 0.7) / 3), "the three pairs of sites"
    assert of_signal(signal[1:2], 0, 1)["signal_max"] == -0.1, "a square that is not resolved is kept, not clipped"
    energies_of_sites = [{"rho_off": 0.2, "rho_off_low": 0.1}, {"rho_off": 0.5, "rho_off_low": None}]
    assert of_moments(energies_of_sites, None, 2) == {"rho_off": pytest.approx(0.35), "rho_off_resolved": 0.5}
    covariance = [
        {"null_rho_off": 0.1, "diagonal_by_draft": True, "null_max_covariance": 9e-6, "mean_variance": 1e-6},
        {"null_rho_off": -0.3, "diagonal_by_draft": False, "null_max_covariance": 1e-5, "mean_variance": 1e-5},
        {"null_rho_off": 0.2, "diagonal_by_draft": False, "null_max_covariance": None, "mean_variance": 1.0},
    ]
    assert of_covariance(covariance, None, 3) == {
        "null_rho_off": pytest.approx(0.0),
        "draft_share": pytest.approx(1 / 3),
        "null_draft_share": pytest.approx(2 / 3),
        "tiny_variance_share": pytest.approx(1 / 3),
    }


def test_the_number_of_sites_compared_is_each_nets_own() -> None:
    """A shallower net of another data set must not change what is the largest of this one's sites."""
    rows = sites(SIGNAL, lambda **key: {"signal_feature_sq": float(key["site"])}, depths=(2, 4))
    other = [{**row, "dataset": "other", "depth": 1} for row in rows if row["depth"] == 2 and row["site"] < 2]
    alone, together = (run_values({"signal": part}, ["signal"], "test", None) for part in (rows, rows + other))
    assert all(together[run] == values for run, values in alone.items())
    assert {run[3]: values["signal_max"] for run, values in alone.items()} == {2: 2.0, 4: pytest.approx(3.5)}


@given(depth=st.integers(1, 200), part=st.fractions(0, 1, max_denominator=6))
def test_a_relative_site_is_a_site_only_where_it_is_a_whole_number(depth: int, part: Fraction) -> None:
    site = site_of(f"{part.numerator}/{part.denominator}", depth)
    assert (site is None) == (part.numerator * depth % part.denominator != 0)
    assert site is None or site / depth == pytest.approx(float(part))


def test_relative_sites_choose_the_same_place_in_nets_of_any_depth() -> None:
    """The end of a ResNet's first stage is its site L/3; a rounded one would compare stages with one another."""
    assert [site_of("1/3", depth) for depth in (3, 6, 9, 10)] == [1, 2, 3, None]
    rows = sites(SIGNAL, lambda **key: {"signal_feature_sq": float(key["site"]), "feature_scale_free_sq": 1.0})
    runs = run_values({"signal": rows}, ["signal"], "test", "1/2")
    found = {run[3]: values.get("signal_raw") for run, values in runs.items()}
    assert found == {1: None, 2: 1.0, 4: 2.0, 8: 4.0}
    pairs = {run[3]: values["signal_max"] for run, values in runs.items()}  # mean largest of two of 0..L: (2 L + 1)/3
    assert pairs == {depth: pytest.approx((2 * depth + 1) / 3) for depth in DEPTHS}


@pytest.mark.parametrize("fault", ["twice", "lacking"])
@pytest.mark.parametrize("table", ["signal", "moments", "covariance"])
def test_a_run_with_a_site_too_few_or_too_many_is_refused(table: str, fault: str) -> None:
    """A mean over the sites that are left would pass for one over all."""
    rows = sites(SCHEMAS[table], lambda **key: {})
    place = {"depth": 4, "width": 8, "seed": 1, "checkpoint": "final", "split": "test", "site": 2}
    changed = (
        without(rows, **place) if fault == "lacking" else rows + [row for row in rows if place.items() <= row.items()]
    )
    named = f"table {table}: the run .*checkpoint final, depth 4, width 8, samples 4000, seed 1 has sites"
    with pytest.raises(InputError, match=named):
        run_values({table: changed}, [table], "test", None)
    assert run_values({table: changed}, [table], "train", None), "the other split is whole"


def test_a_table_that_no_claim_reads_is_refused() -> None:
    with pytest.raises(
        InputError,
        match="no claim reads table 'curves'; accepted: chain, covariance, expansion, jumpboard, metrics, moments, "
        "routes, signal, step_gains, widening",
    ):
        run_values({"curves": []}, ["curves"], "test", None)


# Trends in depth


@pytest.mark.parametrize("resolved", [True, False])
@pytest.mark.parametrize(("power", "verdict"), [(-1, "supported"), (1, "contradicted"), (0, "inconclusive")])
@pytest.mark.parametrize("claim", ["signal_decay_raw", "signal_decay_scale_free", "signal_decay_maximum"])
def test_planted_trends_get_their_verdict_on_either_scale(
    claim: str, power: float, verdict: str, resolved: bool
) -> None:
    rows = judged(claim, {"signal": signals(power, resolved=resolved, sd=0.02 * abs(power))})
    assert {checkpoint: row["verdict"] for checkpoint, row in rows.items()} == {"final": verdict, "loss_1": verdict}
    for row in rows.values():
        assert row["statistic"].startswith("slope of log2(" if resolved else "slope of signal_")
        assert ("not every value is resolved" in row["statistic"]) != resolved
        assert 0 <= row["control_share"] <= TOLERATED
        assert row["control_share"] * PERMUTATIONS == pytest.approx(round(row["control_share"] * PERMUTATIONS))


def test_a_signal_that_halves_with_each_doubling_has_slope_minus_one() -> None:
    final = judged("signal_decay_raw", {"signal": signals(-1, sd=0)})["final"]
    assert final["estimate"] == pytest.approx(-1)
    assert final["intervals"].split("; ")[1:] == [
        f"slope at width {width}: -1.000 [-1.000, -1.000]" for width in WIDTHS
    ]
    assert final["n"] == len(SEEDS)


def trend_of(values: Any, resolved: Any = 0.0) -> Observations:
    array = np.asarray(values, dtype=float)[..., None]
    columns = {"signal_raw": array, "signal_raw_resolved": np.broadcast_to(resolved, array.shape[:-1])[..., None]}
    seeds, depths, widths, _ = array.shape
    return Observations((2, 4, 8, 16)[:depths], WIDTHS[:widths], (SAMPLES,), tuple(range(seeds)), columns, ())


def test_unresolved_squares_stay_on_a_linear_scale_and_are_averaged_over_widths() -> None:
    """Per seed: width 8 falls by 1 and width 16 by 3 per doubling; in units of the root mean square."""
    values = np.array([[[1.0, 3.0], [0.0, 0.0], [-1.0, -3.0]]] * 3)
    ruling = trend_in_depth.judge(trend_of(values))
    assert ruling.main.estimate == pytest.approx(-2 / np.sqrt((2 * 1 + 2 * 9) / 6))
    assert ruling.intervals["slope at width 16"].estimate == pytest.approx(-3 / np.sqrt(20 / 6))


@pytest.mark.parametrize("cause", ["one is not resolved", "one is negative"])
def test_one_value_that_is_not_resolved_keeps_all_on_the_linear_scale(cause: str) -> None:
    values, resolved = np.full((3, 4, 2), 2.0), np.ones((3, 4, 2))
    assert "log2(signal_raw)" in trend_in_depth.judge(trend_of(values, resolved)).statistic
    if cause == "one is negative":
        values[1, 2, 0] = -2.0
    else:
        resolved[1, 2, 0] = 0
    ruling = trend_in_depth.judge(trend_of(values, resolved))
    assert ruling.statistic.startswith("slope of signal_raw on log2(depth)")
    assert np.isfinite(ruling.main.estimate)


def test_signals_that_are_all_zero_show_no_trend() -> None:
    ruling = trend_in_depth.judge(trend_of(np.zeros((3, 4, 2))))
    assert (ruling.verdict, ruling.main.estimate) == ("inconclusive", 0)


@pytest.mark.parametrize("resolved", [True, False])
@pytest.mark.parametrize("size", [1e-12, 1e6])
def test_the_unit_of_a_signal_moves_no_verdict_and_no_estimate(size: float, resolved: bool) -> None:
    """Squared gradients of a well fitted net are far below the rounding that limits are held against."""
    plain, scaled = (
        judged("signal_decay_raw", {"signal": signals(-1, resolved=resolved, size=s)}) for s in (1.0, size)
    )
    for checkpoint, row in plain.items():
        assert scaled[checkpoint]["verdict"] == row["verdict"] == "supported"
        for column in ("estimate", "low", "high"):
            assert scaled[checkpoint][column] == pytest.approx(row[column], rel=1e-9)


@pytest.mark.parametrize("mean", [0.0, 1.0, 4.0])  # none resolved, some or all of them, all
@pytest.mark.parametrize("shape", [(4, 4, 4), (3, 3, 1)])
def test_noise_is_called_a_trend_in_at_most_one_of_twenty_tables_a_side(shape: tuple[int, ...], mean: float) -> None:
    generator, tables = np.random.default_rng(17), 1000
    called = []
    for _ in range(tables):
        values = generator.normal(mean, 0.25, shape)
        called.append(trend_in_depth.judge(trend_of(values, values > 1.729 * 0.25)).verdict)
    bound = 0.05 + 3 * (0.05 * 0.95 / tables) ** 0.5
    assert called.count("supported") / tables < bound
    assert called.count("contradicted") / tables < bound


def test_depth_labels_change_places_within_a_seed_and_width_and_columns_stay_together() -> None:
    values = np.random.default_rng(0).normal(size=(3, 4, 2))
    seen = trend_of(values, values * 2)
    moved = permute_depths(seen, np.random.default_rng(0)).columns
    assert not np.array_equal(moved["signal_raw"], seen.columns["signal_raw"])
    np.testing.assert_array_equal(np.sort(moved["signal_raw"], axis=1), np.sort(seen.columns["signal_raw"], axis=1))
    np.testing.assert_array_equal(moved["signal_raw_resolved"], 2 * moved["signal_raw"])


def test_the_control_fires_where_any_order_of_depths_would_do() -> None:
    """Two depths whose difference is the same in all three seeds: a random order looks as decided in 1 case of 8."""
    seen = trend_of(np.array([[[2.0], [1.0]]] * 3))
    assert trend_in_depth.judge(seen).verdict == "supported"
    null = trend_in_depth.null(seen, "any", "supported")
    assert null.share == pytest.approx(1 / 8, abs=0.07)
    assert null.meaning == "of 200 permutations are called supported"


# Near-diagonal covariance


@pytest.mark.parametrize(
    ("rho", "sd", "verdict"),
    [(0.3, 0.02, "supported"), (0.7, 0.02, "contradicted"), (0.5, 0.2, "inconclusive"), (0.5, 0, "inconclusive")],
)
def test_planted_energy_off_the_diagonal_gets_its_verdict(rho: float, sd: float, verdict: str) -> None:
    rows = judged("near_diagonal", energies(rho, sd=sd))
    assert {row["verdict"] for row in rows.values()} == {verdict}
    for row in rows.values():
        assert row["estimate"] == pytest.approx(rho, abs=0.03)
        assert [part.split(":")[0] for part in row["intervals"].split("; ")] == [
            "all nets",
            *(f"at width {width}" for width in WIDTHS),
        ]
        assert row["control_share"] == 0


@pytest.mark.parametrize(("rest", "verdict"), [(0.0, "supported"), (None, "inconclusive")])
def test_energy_that_is_not_resolved_settles_nothing(rest: float | None, verdict: str) -> None:
    """With heavy tails a ratio of unbiased moments leans to 0; a true share of 0.57 came out supported in 20 %."""
    tables = energies(0.3)
    for row in tables["moments"]:
        row["rho_off_low"] = rest if row["seed"] == 0 else 0.0  # a quarter of all sites
    assert judged("near_diagonal", tables)["final"]["verdict"] == verdict


def test_the_largest_of_more_sites_is_not_called_a_trend() -> None:
    """Sites that differ by chance alone: the maximum over all of them would rise with depth in nearly every table."""
    generator, tables, called = np.random.default_rng(6), 60, []
    for _ in range(tables):
        rows = sites(
            SIGNAL, lambda **key: {"signal_feature_sq": generator.normal(1, 0.1), "signal_feature_sq_low": 0.1}
        )
        called.append(judged("signal_decay_maximum", {"signal": rows})["final"]["verdict"])
    assert called.count("contradicted") / tables < 0.09 + 3 * (0.09 * 0.91 / tables) ** 0.5


def test_sites_count_alike_within_a_net_and_nets_alike_within_a_seed() -> None:
    """Depths 1 and 2: means over sites 1/2 and 1; the mean over nets is 3/4, that over all rows would be 4/5."""
    rows = sites(MOMENTS, lambda **key: {"rho_off": key["site"] / 1.0, "rho_off_low": 0.0}, depths=(1, 2))
    tables = {"moments": rows, "covariance": sites(COVARIANCE, lambda **key: {}, depths=(1, 2))}
    assert judged("near_diagonal", tables, grid((1, 2)))["final"]["estimate"] == pytest.approx(3 / 4)


@pytest.mark.parametrize(("runs", "verdict"), [(4, "contradicted"), (5, "inconclusive")])
def test_permuted_samples_that_look_correlated_stop_the_verdict(runs: int, verdict: str) -> None:
    """A tenth of the 48 runs is tolerated; an estimator that sees energy where there is none settles nothing."""
    tables = energies(0.7)
    seen = [(depth, width, seed) for depth in DEPTHS for width in WIDTHS for seed in SEEDS][:runs]
    for row in tables["covariance"]:
        row["null_rho_off"] = 0.5 if (row["depth"], row["width"], row["seed"]) in seen else 0.499
    final = judged("near_diagonal", tables)["final"]
    assert (final["verdict"], final["control_share"]) == (verdict, pytest.approx(runs / 48))
    note = f"control not null: {runs / 48:.0%} of runs have a rho_off of at least 1/2 with permuted samples too"
    assert final["reason"] == (note if verdict == "inconclusive" else "")


@pytest.mark.parametrize(
    ("met", "verdict"),
    [
        (lambda site: True, "supported"),
        (lambda site: False, "contradicted"),
        (lambda site: site > 0, "supported"),  # all but one site of each net; 1/2 at depth 1
        (lambda site: site == 0, "contradicted"),
    ],
)
def test_the_drafts_criterion_is_counted_over_sites(met: Callable[[int], bool], verdict: str) -> None:
    rows = judged("near_diagonal_draft", criteria(met))
    assert {row["verdict"] for row in rows.values()} == {verdict}
    expected = np.mean([np.mean([met(site) for site in range(depth + 1)]) for depth in DEPTHS])
    assert rows["final"]["estimate"] == pytest.approx(expected)


def test_the_drafts_criterion_at_half_of_the_sites_decides_nothing() -> None:
    tables = criteria(lambda site: True)
    for row in tables["covariance"]:
        row["diagonal_by_draft"] = row["width"] == 8 or (row["width"] == 16 and row["depth"] < 4)
    final = judged("near_diagonal_draft", tables)["final"]
    assert (final["verdict"], final["estimate"]) == ("inconclusive", 0.5)


@pytest.mark.parametrize(
    ("met", "settings_", "reason"),
    [
        (True, {"variance": 9e-6}, "control not null: 100% of runs have a mean variance below the criterion's limit"),
        (False, {"null": 1e-5}, "control not null: 100% of runs break the criterion at half of their sites with"),
        (True, {"null": 1e-5}, ""),
        (False, {"variance": 9e-6}, ""),
    ],
)
def test_a_criterion_that_could_say_nothing_else_decides_nothing(
    met: bool, settings_: dict[str, Any], reason: str
) -> None:
    """Gradients of a well fitted net are below 1e-5 whatever their correlations; with few samples none are."""
    final = judged("near_diagonal_draft", criteria(lambda site: met, **settings_))["final"]
    assert final["reason"].startswith(reason)
    assert final["verdict"] == ("inconclusive" if reason else "supported" if met else "contradicted")


@pytest.mark.parametrize("rule", [near_diagonal, near_diagonal_draft])
def test_a_mean_of_one_half_is_called_either_way_in_at_most_one_of_twenty_tables(rule: Any) -> None:
    generator, tables, called = np.random.default_rng(18), 1000, []
    for _ in range(tables):
        net = 0.5 + generator.normal(0, 0.1, (4, 1, 1, 1)) + generator.normal(0, 0.1, (4, 3, 2, 1))
        columns = {rule.COLUMNS[0]: net, "rho_off_resolved": np.ones_like(net)}
        seen = Observations((1, 2, 4), (8, 16), (SAMPLES,), SEEDS, columns, ())
        called.append(rule.judge(seen).verdict)
    bound = 0.05 + 3 * (0.05 * 0.95 / tables) ** 0.5
    assert called.count("supported") / tables < bound
    assert called.count("contradicted") / tables < bound


# Runs that are not there, loss levels, splits


def test_runs_that_were_not_measured_are_named() -> None:
    rows = without(without(signals(-1), depth=4, width=8, seed=2, checkpoint="final"), depth=8)
    found = judged("signal_decay_maximum", {"signal": rows})
    assert {row["verdict"] for row in found.values()} == {"not evaluated"}
    deepest = [f"depth 8, width {width}, samples 4000" for width in WIDTHS]
    assert found["final"]["missing"].split("; ") == ["depth 4, width 8, samples 4000, seed 2", *deepest]
    assert found["loss_1"]["missing"].split("; ") == deepest


def test_a_run_that_stands_in_one_of_two_tables_only_is_missing() -> None:
    tables = energies(0.3)
    tables["covariance"] = without(tables["covariance"], depth=2, width=16, seed=0)
    final = judged("near_diagonal", tables)["final"]
    assert (final["verdict"], final["missing"]) == ("not evaluated", "depth 2, width 16, samples 4000, seed 0")


def test_a_diverged_run_is_told_from_one_that_was_not_measured() -> None:
    key = {**NET, "depth": 4, "width": 8, "samples": SAMPLES, "seed": 1, "checkpoint": "final"}
    rows = without(without(signals(-1), **key), **(key | {"seed": 2}))
    tables = {"signal": rows, "metrics": [blank(METRICS) | key | {"status": "diverged"}]}
    final = judged("signal_decay_maximum", tables)["final"]
    assert final["missing"].split("; ") == [
        "depth 4, width 8, samples 4000, seed 1 (diverged)",
        "depth 4, width 8, samples 4000, seed 2",
    ]


def test_a_scale_free_signal_that_is_null_is_named_undefined() -> None:
    """A net that passes no gradient has no relative signal; its raw one is 0."""
    rows = signals(-1)
    for row in rows:
        if (row["depth"], row["width"], row["seed"], row["checkpoint"]) == (4, 8, 3, "final"):
            row["feature_scale_free_sq"] = None
    final = judged("signal_decay_scale_free", {"signal": rows})["final"]
    assert (final["verdict"], final["missing"]) == (
        "not evaluated",
        "depth 4, width 8, samples 4000, seed 3 (undefined)",
    )
    assert judged("signal_decay_raw", {"signal": rows})["final"]["verdict"] == "supported"


def test_at_a_loss_level_only_widths_count_that_every_run_brought_there() -> None:
    """A width at which the shallow nets do not fit would lack its small depths, and compare the others with nothing."""
    rows = without(signals(-1), depth=2, width=8, seed=3, checkpoint="loss_1")
    found = judged("signal_decay_raw", {"signal": rows})
    assert {row["verdict"] for row in found.values()} == {"supported"}
    assert "depths 2-8, widths 8-32, M = 4000, final nets, test split, site 1/2" in found["final"]["configuration"]
    assert "depths 2-8, widths 16 and 32, M = 4000, nets at training loss 1" in found["loss_1"]["configuration"]
    assert "slope at width 8:" in found["final"]["intervals"]
    assert "slope at width 8:" not in found["loss_1"]["intervals"]


def test_a_loss_level_that_no_width_reached_is_not_evaluated() -> None:
    rows = [row for row in signals(-1) if (row["checkpoint"], row["seed"]) != ("loss_1", 0)]
    level = judged("signal_decay_raw", {"signal": rows})["loss_1"]
    assert (level["verdict"], level["reason"]) == ("not evaluated", "at no width have all runs a checkpoint loss_1")
    assert (level["missing"], level["n"], level["estimate"]) == ("", 0, None)


def test_a_run_without_any_rows_is_missing_at_a_loss_level_not_one_that_fell_short() -> None:
    """Lost rows must not quietly take their width out of the claim."""
    rows = without(signals(-1), depth=2, width=8, seed=3)
    level = judged("signal_decay_raw", {"signal": rows})["loss_1"]
    assert (level["verdict"], level["missing"]) == ("not evaluated", "depth 2, width 8, samples 4000, seed 3")


def test_a_run_that_diverged_before_the_level_fell_short() -> None:
    key = {**NET, "depth": 4, "width": 8, "samples": SAMPLES, "seed": 1}
    rows = without(without(signals(-1), **key, checkpoint="final"), **key, checkpoint="loss_1")
    metrics = [blank(METRICS) | key | {"status": "diverged", "checkpoint": "final"}]
    level = judged("signal_decay_raw", {"signal": rows, "metrics": metrics})["loss_1"]
    assert (level["verdict"], "widths 16 and 32" in level["configuration"]) == ("supported", True)


def test_depths_without_a_site_just_there_are_not_expected() -> None:
    """Depth 1 has no middle site: the claim is judged on the others, and on too few of them not at all."""
    found = judged("signal_decay_raw", {"signal": signals(-1)})
    assert found["final"]["configuration"].startswith("mnist1d/resmlp, depths 2-8,")
    assert judged("signal_decay_maximum", {"signal": signals(-1)})["final"]["configuration"].startswith(
        "mnist1d/resmlp, depths 1-8,"
    )
    thirds = judged("signal_decay_raw", {"signal": signals(-1)}, relative_site="1/3")
    assert thirds["final"]["reason"] == "the config has no cells of mnist1d/resmlp for it"
    quarters = judged("signal_decay_raw", {"signal": signals(-1)}, relative_site="1/4")
    assert quarters["final"]["reason"] == "the grid has 2 depths of at least 3"


def test_each_split_is_judged_on_its_own_rows() -> None:
    rows = [row for row in signals(-1) if row["split"] == "test"] + [
        row for row in signals(1) if row["split"] == "train"
    ]
    verdicts = {
        split: judged("signal_decay_raw", {"signal": rows}, split=split)["final"]["verdict"] for split in SPLITS
    }
    assert verdicts == {"test": "supported", "train": "contradicted"}


# The whole ledger


@pytest.fixture(scope="module")
def whole() -> Tables:
    """All measured tables of one small run."""
    met = criteria(lambda site: True)["covariance"]
    energy = energies(0.7)
    covariance = [row | {"null_rho_off": 0.0} for row in met]
    return {"metrics": [], "signal": signals(-1), "moments": energy["moments"], "covariance": covariance}


@given(order=st.integers(0, 1000), shift=st.integers(0, 1000))
@settings(max_examples=4, deadline=None)
def test_verdicts_depend_neither_on_the_order_of_rows_nor_on_the_names_of_seeds(
    whole: Tables, order: int, shift: int
) -> None:
    """Rows come cell by cell in the order of the run, which is nobody's choice."""
    claims = {name: ENTRIES[name] for name in ("signal_decay_raw", "near_diagonal", "near_diagonal_draft")}
    changed = {name: [row | {"seed": row["seed"] + shift} for row in rows] for name, rows in whole.items()}
    for rows in changed.values():
        random.Random(order).shuffle(rows)
    before = evaluate(claims, dict.fromkeys(SCHEMAS, grid()), whole)
    after = evaluate(claims, dict.fromkeys(SCHEMAS, grid(seeds=tuple(seed + shift for seed in SEEDS))), changed)
    for old, new in zip(before, after, strict=True):
        for column in ("verdict", "reason", "configuration", "statistic", "missing"):
            assert new[column] == old[column]
        for column in ("estimate", "low", "high", "control_share"):
            assert new[column] == (old[column] if old[column] is None else pytest.approx(old[column], abs=1e-9))


def test_every_claim_names_both_splits_the_test_split_first() -> None:
    """Training gradients shrink because the net has fitted them; without the test split that is all one sees."""
    for claim, entry in ENTRIES.items():
        nets: dict[tuple[str, str], list[str]] = {}
        for net in entry["evaluated_on"]:
            nets.setdefault((net["dataset"], net["arch"]), []).append(net["split"])
        assert set(map(tuple, nets.values())) == {("test", "train")}, claim
        assert entry["checkpoints"][0] == "final"


def test_the_readme_shows_final_test_verdicts_and_the_others_beside_them(whole: Tables) -> None:
    rows = evaluate(ENTRIES, dict.fromkeys(SCHEMAS, grid()), whole)
    text = readme_table(rows)
    assert text == readme_table(reversed(rows))
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert len(lines) == len(ENTRIES) * 2
    (raw,) = (line for line in lines if "**signal_decay_raw**" in line)
    assert "| mnist1d/resmlp | 4,000 | final, test | supported | -0.99" in raw
    assert raw.endswith("| loss 1, test: supported; final, train: supported; loss 1, train: supported |")
    assert "* `signal_decay_raw`: the estimate is the slope of log2(signal_raw) on log2(depth), mean over" in text


def test_the_readme_tells_scales_apart_where_nets_differ(whole: Tables) -> None:
    other = [row | {"dataset": "mnist5k", "arch": "resnet_bn"} for row in signals(-1, resolved=False)]
    cells = [*grid(), *(cell | {"dataset": "mnist5k", "arch": "resnet_bn"} for cell in grid())]
    claims = {"signal_decay_maximum": ENTRIES["signal_decay_maximum"]}
    text = readme_table(evaluate(claims, {"signal": cells}, {"signal": whole["signal"] + other}))
    legend = text.splitlines()[-1]
    assert (
        "slope of log2(signal_max) on log2(depth), mean over widths, doublings per doubling of depth (mnist1d/"
        in legend
    )
    assert "; the slope of signal_max on log2(depth)" in legend
    assert legend.endswith("(mnist5k/resnet_bn).")


def test_the_stage_reads_collected_tables_and_expects_what_is_measured(whole: Tables, tmp_path: Path) -> None:
    """Two files of a table, a cell that the config trains and does not measure, and a ledger that fits its schema."""
    block = {**NET, "training": "resmlp", "seeds": list(SEEDS)}
    product = {"depth": list(DEPTHS), "width": [*WIDTHS, 64], "samples": [SAMPLES]}
    measured = [{**NET, "only": {"width": list(WIDTHS)}}]
    config = {"config": {"grid": [block | {"product": product}], "measurements": measured}, "claims": ENTRIES}
    (tmp_path / "config.json").write_text(json.dumps({"datasets": {}} | config))
    inputs = {"config": tmp_path / "config.json"}
    for name, rows in whole.items():
        for i, part in enumerate((rows[::2], rows[1::2])):
            inputs[f"{name}_{i}"] = tmp_path / f"{name}_{i}.parquet"
            write_table(
                inputs[f"{name}_{i}"], SCHEMAS[name], part, Provenance("0", "0", {}, SEEDS, "bytes", 1, "cpu", {})
            )
    out = tmp_path / "claims.parquet"
    evaluate_claims.body(Job("evaluate_claims", tmp_path, {}, "0", 1, inputs, {"claims": out}))
    rows = read_table(out, CLAIMS).to_pylist()
    found = {(row["claim"], row["split"], row["checkpoint"]): row["verdict"] for row in rows if row["arch"] == "resmlp"}
    assert len(found) == len(ENTRIES) * 4
    assert {key[0]: verdict for key, verdict in found.items()} == {
        "signal_decay_raw": "supported",
        "signal_decay_scale_free": "supported",
        "signal_decay_maximum": "supported",
        "near_diagonal": "contradicted",
        "near_diagonal_draft": "supported",
    }


def test_the_figure_shows_the_slopes_that_the_ledger_judges() -> None:
    """Title and verdict once differed: the figure averaged over widths that some run had not reached."""
    rows = without(signals(-1, sd=0.2), checkpoint="loss_1", depth=1, width=8, seed=2)
    drawn = {(row["statistic"], row["checkpoint"]): row for row in trends(rows) if row["split"] == "test"}
    names = {"signal_decay_raw": "raw", "signal_decay_scale_free": "scale_free", "signal_decay_maximum": "largest"}
    for claim, statistic in names.items():
        for checkpoint, verdict in judged(claim, {"signal": rows}).items():
            shown = drawn[statistic, checkpoint]
            mean = [shown[name] for name in ("mean_slope", "mean_slope_low", "mean_slope_high")]
            assert mean == pytest.approx([verdict[name] for name in ("estimate", "low", "high")]), (claim, checkpoint)


def test_a_width_that_fell_short_and_is_unresolved_has_no_slope_on_a_log_scale() -> None:
    """The scale is that of the widths that are compared; log2 of another one's negative square does not exist."""
    rows = without(signals(-1), checkpoint="loss_1", depth=2, width=8, seed=2)
    for row in rows:
        if (row["checkpoint"], row["width"], row["depth"]) == ("loss_1", 8, 4):
            row.update(signal_feature_sq=-1.0, signal_feature_sq_low=-2.0)
    drawn = [row for row in trends(rows) if (row["statistic"], row["checkpoint"]) == ("raw", "loss_1")]
    assert {(row["width"], row["slope"] is None) for row in drawn} == {(8, True), (16, False), (32, False)}
