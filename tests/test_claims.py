"""A verdict that the tables do not carry is the worst thing this project could publish: planted tables, whose verdicts
are known, must come out as known; noise must rarely come out as anything; and gaps must be named."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import read_table, write_table
from jumpboard.claims import data_moves_rebound, joint_gain, rebound
from jumpboard.claims.base import TOLERATED
from jumpboard.claims.controls import PERMUTATIONS, permute_cells, permute_sample_sizes
from jumpboard.claims.ledger import evaluate
from jumpboard.claims.observations import Observations, observe
from jumpboard.claims.readme_table import readme_table
from jumpboard.claims.registry import rule_of
from jumpboard.claims.run_values import index_metrics
from jumpboard.claims.statistics import in_words, mean_interval, slopes
from jumpboard.errors import InputError
from jumpboard.schemas.claims import CLAIMS

LEDGER: dict[str, Any] = yaml.safe_load((Path(__file__).parents[1] / "config/claims.yaml").read_text())
ENTRIES = {claim: entry for claim, entry in LEDGER.items() if entry["tables"] == ["metrics"]}
KINDS = sorted(entry["rule"]["kind"] for entry in ENTRIES.values())
NET = {"dataset": "mnist1d", "arch": "resmlp"}
DEPTHS, WIDTHS, SEEDS = (1, 2, 4, 8), (8, 16, 32, 64), (0, 1, 2, 3)
Table = dict[int, dict[int, list[float]]]  # samples -> width -> loss by depth

FALLING: Table = {
    m: {w: [2 - 0.1 * i - 0.1 * j for i in range(4)] for j, w in enumerate(WIDTHS)} for m in (4000, 40000)
}
RISING: Table = {m: {w: [1 + 0.1 * i + 0.1 * j for i in range(4)] for j, w in enumerate(WIDTHS)} for m in (4000, 40000)}
REBOUND: Table = {
    4000: {8: [1.6, 1.4, 1.8, 2.0], 16: [1.5, 1.3, 1.5, 1.7], 32: [1.4, 1.2, 1.1, 1.3], 64: [1.2, 1, 0.9, 0.8]}
}
MOVING: Table = {
    4000: {w: [1.0, 1.2, 1.4, 1.6] for w in WIDTHS},  # D* = 1
    40000: {w: [1.0, 0.9, 0.8, 0.9] for w in WIDTHS},  # D* = 4
}


def metrics(table: Table, sd: float = 0.01, seeds: tuple[int, ...] = SEEDS, draw: int = 0) -> list[dict[str, Any]]:
    """Rows of table `metrics` (the columns that claims read) with noise shared by validation and test loss of a run."""
    generator = np.random.default_rng(draw)
    rows = []
    for samples, by_width in table.items():
        for width, by_depth in by_width.items():
            for depth, loss in zip(DEPTHS, by_depth, strict=False):
                for seed in seeds:
                    key = {**NET, "depth": depth, "width": width, "samples": samples, "seed": seed}
                    noisy = loss + generator.normal(0, sd)
                    losses = {"validation_loss": noisy + 0.02, "test_loss": noisy}
                    rows += [
                        {**key, "checkpoint": checkpoint, "status": "trained", **losses}
                        for checkpoint in ("init", "best_validation", "final")
                    ]
    return rows


def grid(table: Table, seeds: tuple[int, ...] = SEEDS) -> list[dict[str, Any]]:
    return [
        {**NET, "depth": depth, "width": width, "samples": samples, "seeds": list(seeds)}
        for samples, by_width in table.items()
        for width, by_depth in by_width.items()
        for depth in DEPTHS[: len(by_depth)]
    ]


def evaluated(claims: dict[str, Any], cells: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return evaluate(claims, {"metrics": cells}, {"metrics": rows})


def judged(claim: str, table: Table, **settings: Any) -> list[dict[str, Any]]:
    return evaluated({claim: on_resmlp(claim)}, grid(table), metrics(table, **settings))


def on_resmlp(claim: str) -> dict[str, Any]:
    return ENTRIES[claim] | {"evaluated_on": [NET]}


def observations(table: Table, **settings: Any) -> Observations:
    return observe(index_metrics(metrics(table, **settings)), grid(table), "final", ("validation_loss", "test_loss"))


def without(rows: list[dict[str, Any]], **labels: int) -> list[dict[str, Any]]:
    return [row for row in rows if any(row[key] != value for key, value in labels.items())]


@pytest.mark.parametrize(
    ("claim", "table", "verdict"),
    [
        ("joint_gain", FALLING, "supported"),
        ("joint_gain", RISING, "contradicted"),
        ("joint_gain", {4000: {w: [1.0] * 4 for w in WIDTHS}}, "inconclusive"),
        ("rebound", REBOUND, "supported"),
        ("rebound", {4000: dict(zip(WIDTHS, reversed(REBOUND[4000].values()), strict=True))}, "inconclusive"),
        (
            "rebound",
            {4000: {w: [1.0, 1.1 + 0.1 * j, 1.1, 1.1 + 0.2 * j] for j, w in enumerate(WIDTHS)}},
            "contradicted",
        ),
        ("rebound", FALLING, "inconclusive"),
        ("data_moves_rebound", MOVING, "supported"),
        ("data_moves_rebound", {4000: MOVING[40000], 40000: MOVING[4000]}, "contradicted"),
        ("data_moves_rebound", FALLING, "inconclusive"),
        ("data_moves_rebound", {4000: MOVING[4000]}, "not evaluated"),
        ("joint_gain", {4000: {8: [1, 2, 3, 4], 16: [1, 2, 3, 4]}}, "not evaluated"),
        ("rebound", {4000: {w: [1.0, 2.0] for w in WIDTHS}}, "not evaluated"),
    ],
)
def test_planted_tables_get_their_verdict(claim: str, table: Table, verdict: str) -> None:
    rows = judged(claim, table)
    assert {row["verdict"] for row in rows} == {verdict}
    assert {row["checkpoint"] for row in rows} == {"final", "best_validation"}
    expected_sizes = {0} if claim == "data_moves_rebound" else set(table)
    assert {row["samples"] for row in rows} == expected_sizes
    assert all((row["verdict"] in ("supported", "contradicted")) or row["reason"] for row in rows)


def test_better_deepest_net_on_test_than_where_validation_points_contradicts() -> None:
    rows = metrics({4000: {w: [1.0, 1.1, 1.2, 0.9] for w in WIDTHS}})
    for row in rows:
        row["validation_loss"] = 2.0 - (row["depth"] == 1)
    (final, *_) = evaluated({"rebound": on_resmlp("rebound")}, grid({4000: {w: [0] * 4 for w in WIDTHS}}), rows)
    assert (final["verdict"], final["estimate"] < 0) == ("contradicted", True)


def test_a_slope_without_a_rebound_at_the_smallest_width_supports_nothing() -> None:
    """D* is the deepest net at the smallest width; wider ones are better on test where validation does not look."""
    table = {4000: {w: [1.0, 1.0, 1.0, 1.0 - 0.1 * j] for j, w in enumerate(WIDTHS)}}
    rows = metrics(table)
    for row in rows:
        row["validation_loss"] = 2.0 - (row["depth"] == (8 if row["width"] == 8 else 1))
    (final, _) = evaluated({"rebound": on_resmlp("rebound")}, grid(table), rows)
    assert (final["verdict"], final["reason"]) == ("inconclusive", "the rebound at width 8 is not resolved")


def test_each_checkpoint_is_judged_on_its_own_rows() -> None:
    rows = metrics(FALLING)
    for row in rows:
        row["test_loss"] *= -1 if row["checkpoint"] == "best_validation" else 1
    verdicts = {
        row["checkpoint"]: row["verdict"]
        for row in evaluated({"joint_gain": on_resmlp("joint_gain")}, grid(FALLING), rows)
    }
    assert verdicts == {"final": "supported", "best_validation": "contradicted"}


def test_interval_is_the_textbook_one() -> None:
    interval = mean_interval([1.0, 2.0, 3.0, 4.0])  # s^2 = 5/3, t(0.95, 3) = 2.353363
    assert interval.estimate == 2.5
    assert interval.high == pytest.approx(2.5 + 2.353363 * (5 / 3 / 4) ** 0.5, rel=1e-6)
    assert interval.low == pytest.approx(5 - interval.high)
    assert interval.n == 4
    assert interval.positive
    assert not interval.negative


def test_small_estimates_are_told_to_more_decimals() -> None:
    """A gain of 0.0004 nats with all its interval must not read as 0.000 [0.000, 0.001]."""
    assert in_words(0.0004, 0.0001, 0.0007) == "0.00040 [0.00010, 0.00070]"
    assert in_words(0.0004, -0.02, 0.02) == "0.000 [-0.020, 0.020]"
    assert (in_words(0.0, 0.0, 0.0), in_words(0.5, None, None)) == ("0.000 [0.000, 0.000]", "0.500")


def test_one_seed_has_no_limits_and_none_no_mean() -> None:
    single = mean_interval([3.0])
    assert (single.estimate, single.low, single.high, single.n) == (3.0, None, None, 1)
    assert not single.positive
    with pytest.raises(ValueError, match="at least one seed"):
        mean_interval([])


def test_a_rounding_error_shared_by_all_seeds_is_not_an_effect() -> None:
    same = mean_interval([1e-16] * 3)
    assert (same.positive, same.negative) == (False, False)


def test_interval_covers_the_mean_in_nine_of_ten_samples() -> None:
    draws = np.random.default_rng(5).normal(1.0, 0.3, (4000, 3))
    covered = [one.low < 1.0 < one.high for one in map(mean_interval, draws)]
    assert np.mean(covered) == pytest.approx(0.90, abs=3 * (0.09 / 4000) ** 0.5)


def test_slope_of_a_line_is_its_slope_and_of_a_constant_exactly_zero() -> None:
    x = np.log2([3, 6, 9])
    np.testing.assert_allclose(slopes(x, np.array([0.7 - 0.3 * x, 2 * x])), [-0.3, 2], rtol=1e-12)
    assert slopes(x, np.full((1, 3), np.log2(3)))[0] == 0


def test_joint_gain_reads_the_diagonal() -> None:
    seen = observations(FALLING, sd=0)
    ruling = joint_gain.judge(seen)  # each step: one depth and one width further, 0.2 lower
    assert ruling.main.estimate == pytest.approx(-0.2)
    assert ruling.intervals["fall from depth 1, width 8 to depth 2, width 16"].estimate == pytest.approx(0.2)
    assert len(ruling.intervals) == 1 + 3


def test_a_falling_slope_over_a_step_that_rises_supports_nothing_and_names_the_step() -> None:
    table = {4000: {8: [2.0] * 4, 16: [1.0] * 4, 32: [1.3] * 4, 64: [0.5] * 4}}
    assert {(row["verdict"], row["reason"]) for row in judged("joint_gain", table)} == {
        ("inconclusive", "loss rises from depth 2, width 16 to depth 4, width 32")
    }


def test_rebound_is_measured_against_the_depth_that_the_other_seeds_choose_on_validation() -> None:
    validation = np.array([[[3.0], [1.0], [2.0]], [[1.0], [2.0], [3.0]]])  # best: second depth, first depth
    test = np.array([[[0.5], [1.1], [1.8]], [[1.0], [0.2], [1.4]]])
    np.testing.assert_allclose(rebound.rebounds(validation, test), [[1.8 - 0.5], [1.4 - 0.2]])
    np.testing.assert_allclose(rebound.rebounds(validation[:1], test[:1]), [[1.8 - 1.1]])


def test_luck_that_shrinks_with_width_is_not_called_a_rebound() -> None:
    """With D* chosen by a seed's own luck, a flat table with noisier narrow nets is called supported in 13-19 %."""
    generator, tables = np.random.default_rng(12), 1500
    noise = np.array([0.05, 0.04, 0.03, 0.02])[:, None]
    called = []
    for _ in range(tables):
        seen = null_table(generator, (4, 5, 4, 1))
        loss = 1.5 + (seen.columns["test_loss"] - 1.5) * noise / 0.02
        called.append(rebound.judge(replace(seen, columns={"validation_loss": loss, "test_loss": loss})).verdict)
    assert called.count("supported") / tables < 0.05 + 3 * (0.05 * 0.95 / tables) ** 0.5


def test_data_move_the_best_depth_by_a_known_slope() -> None:
    ruling = data_moves_rebound.judge(observations(MOVING, sd=0))
    assert ruling.main.estimate == pytest.approx(2 / np.log2(10))  # D* from 1 to 4: two doublings over log2(10)
    assert ruling.main.n == len(SEEDS)


def test_best_depths_are_compared_as_doublings_and_averaged_over_widths() -> None:
    validation = np.full((3, 3, 2, 2), 1.0)  # seed, depth 3 6 9, width, sample size
    validation[:, 0, :, 0] = 0.5  # little data: D* = 3 at both widths
    validation[:, 2, 0, 1] = 0.5  # more data: D* = 9 at the first width
    validation[:, 0, 1, 1] = 0.5  # but 3 at the second
    seen = Observations((3, 6, 9), (2, 4), (500, 4000), (0, 1, 2), {"validation_loss": validation}, ())
    ruling = data_moves_rebound.judge(seen)
    assert ruling.main.estimate == pytest.approx(np.log2(3) / np.log2(8) / 2)
    assert ruling.intervals["slope at width 4"].estimate == 0


def null_table(generator: np.random.Generator, shape: tuple[int, int, int, int]) -> Observations:
    """Runs that differ by luck only; validation and test loss share it."""
    seeds, depths, widths, samples = shape
    luck = 1.5 + generator.normal(0, 0.02, shape)
    labels = ((1, 2, 4, 8, 16)[:depths], (8, 16, 32, 64)[:widths], (4000, 40000)[:samples], tuple(range(seeds)))
    return Observations(*labels, {"validation_loss": luck + 0.1, "test_loss": luck}, ())


@pytest.mark.parametrize("shape", [(4, 5, 4, 1), (3, 3, 3, 2)])
@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_called_supported_in_at_most_one_of_twenty_tables(kind: str, shape: tuple[int, int, int, int]) -> None:
    generator, tables, rule = np.random.default_rng(11), 1500, rule_of(kind)
    shape = (*shape[:3], 1 if rule.BY_SAMPLES else 2)
    called = [rule.judge(null_table(generator, shape)).verdict for _ in range(tables)]
    bound = 0.05 + 3 * (0.05 * 0.95 / tables) ** 0.5
    assert called.count("supported") / tables < bound
    assert called.count("contradicted") / tables < bound


def test_the_control_is_null_where_the_claim_is_true() -> None:
    for claim, table in (("joint_gain", FALLING), ("rebound", REBOUND), ("data_moves_rebound", MOVING)):
        for row in judged(claim, table):
            assert 0 < row["control_share"] <= TOLERATED
            assert row["control_share"] * PERMUTATIONS == int(row["control_share"] * PERMUTATIONS)


def test_the_control_fires_where_labels_do_not_matter() -> None:
    """One width, three seeds: best depths that always move look moved in 1 of 8 random relabellings as well."""
    table = {m: {8: by_width[8]} for m, by_width in MOVING.items()}
    claim = on_resmlp("data_moves_rebound")
    claim |= {"rule": claim["rule"] | {"minimum": claim["rule"]["minimum"] | {"widths": 1}}}
    rows = evaluated({"c": claim}, grid(table, SEEDS[:3]), metrics(table, seeds=SEEDS[:3]))
    for row in rows:
        assert row["control_share"] == pytest.approx(1 / 8, abs=0.06)
        assert (row["verdict"], row["reason"].split(":")[0]) == ("inconclusive", "control not null")
        assert row["estimate"] > 0


def test_permutations_move_whole_runs_and_stay_within_seeds() -> None:
    seen = observations({**FALLING, 40000: RISING[40000]}, sd=0.05)
    by_size = permute_sample_sizes(seen, np.random.default_rng(0))
    assert not np.array_equal(by_size.columns["test_loss"], seen.columns["test_loss"])
    np.testing.assert_array_equal(np.sort(by_size.columns["test_loss"]), np.sort(seen.columns["test_loss"]))
    single = observations({4000: FALLING[4000]}, sd=0.05)
    cells = permute_cells(single, np.random.default_rng(0))
    flat = [values.reshape(len(SEEDS), -1) for values in (cells.columns["test_loss"], single.columns["test_loss"])]
    assert not np.array_equal(*flat)
    np.testing.assert_array_equal(*(np.sort(values) for values in flat))
    np.testing.assert_allclose(cells.columns["validation_loss"] - cells.columns["test_loss"], 0.02)


def test_a_removed_seed_and_a_removed_depth_are_named() -> None:
    rows = without(without(metrics(REBOUND), seed=2, depth=4, width=8), depth=8)
    (final, best) = evaluated({"rebound": on_resmlp("rebound")}, grid(REBOUND), rows)
    assert final["verdict"] == best["verdict"] == "not evaluated"
    assert final["missing"].split("; ") == [
        "depth 4, width 8, samples 4000, seed 2",
        *(f"depth 8, width {width}, samples 4000" for width in WIDTHS),
    ]
    assert (final["estimate"], final["low"], final["control_share"], final["n"]) == (None, None, None, 0)


@pytest.mark.parametrize("fault", [{"test_loss": np.nan}, {"validation_loss": np.inf}, {"status": "diverged"}])
def test_a_diverged_run_is_named_and_stops_the_verdict(fault: dict[str, Any]) -> None:
    rows = metrics(REBOUND)
    next(row for row in rows if row["checkpoint"] == "final").update(fault)
    (final, best) = evaluated({"rebound": on_resmlp("rebound")}, grid(REBOUND), rows)
    assert final["verdict"] == "not evaluated"
    assert final["missing"] == "depth 1, width 8, samples 4000, seed 0 (diverged)"
    assert best["verdict"] == "supported"


def test_cells_that_the_grid_leaves_out_of_the_product_are_named() -> None:
    cells = [cell for cell in grid(REBOUND) if (cell["depth"], cell["width"]) != (8, 64)]
    (final, _) = evaluated({"rebound": on_resmlp("rebound")}, cells, without(metrics(REBOUND), depth=8, width=64))
    assert (final["verdict"], final["missing"]) == ("not evaluated", "depth 8, width 64, samples 4000")


def test_a_cell_with_fewer_seeds_than_the_others_is_named() -> None:
    cells = grid(REBOUND)
    cells[0]["seeds"] = [0, 1, 2]
    rows = without(metrics(REBOUND), depth=1, width=8, seed=3)
    (final, _) = evaluated({"rebound": on_resmlp("rebound")}, cells, rows)
    assert (final["verdict"], final["missing"]) == ("not evaluated", "depth 1, width 8, samples 4000, seed 3")


def test_too_few_seeds_say_so() -> None:
    rows = evaluated({"rebound": on_resmlp("rebound")}, grid(REBOUND, (0, 1)), metrics(REBOUND, seeds=(0, 1)))
    assert {row["reason"] for row in rows} == {"the grid has 2 seeds of at least 3"}


def test_a_net_outside_the_grid_gets_one_row() -> None:
    rows = evaluated(ENTRIES, grid(MOVING), metrics(MOVING))
    outside = [row for row in rows if row["dataset"] == "mnist5k"]
    assert [row["claim"] for row in outside] == list(ENTRIES)
    assert {(row["verdict"], row["reason"]) for row in outside} == {
        ("not evaluated", "the config has no cells of mnist5k/resnet_bn for it")
    }


def test_a_run_that_stands_twice_is_refused() -> None:
    rows = metrics(REBOUND)
    with pytest.raises(InputError, match=r"depth 1, width 8, samples 4000, seed 0 stands twice"):
        evaluated({"rebound": on_resmlp("rebound")}, grid(REBOUND), rows + rows[:1])


def test_a_claim_with_unknown_rule_or_foreign_columns_is_refused() -> None:
    unknown = on_resmlp("rebound") | {"rule": {"kind": "guess", "minimum": {}}}
    with pytest.raises(
        InputError, match=r"rule kind 'guess' is not known; accepted: beats_training_on, data_moves_rebound"
    ):
        evaluated({"rebound": unknown}, grid(REBOUND), metrics(REBOUND))
    foreign = on_resmlp("rebound") | {"columns": ["test_accuracy"]}
    with pytest.raises(InputError, match=r"claim rebound: columns \['test_accuracy'\] are not those of its rule"):
        evaluated({"rebound": foreign}, grid(REBOUND), metrics(REBOUND))


@given(order=st.permutations(range(len(metrics(REBOUND)))), constant=st.floats(-1, 1), shift=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_verdicts_do_not_depend_on_row_order_a_constant_or_seed_names(
    order: list[int], constant: float, shift: int
) -> None:
    plain = metrics(REBOUND)
    seeds = tuple(seed + shift for seed in SEEDS)
    changed = [
        {
            **plain[index],
            "seed": plain[index]["seed"] + shift,
            "test_loss": plain[index]["test_loss"] + constant,
            "validation_loss": plain[index]["validation_loss"] + constant,
        }
        for index in order
    ]
    claims = {claim: on_resmlp(claim) for claim in ("joint_gain", "rebound")}
    before, after = evaluated(claims, grid(REBOUND), plain), evaluated(claims, grid(REBOUND, seeds), changed)
    for old, new in zip(before, after, strict=True):
        assert new["verdict"] == old["verdict"]
        for column in ("estimate", "low", "high", "control_share"):
            assert new[column] == pytest.approx(old[column], abs=1e-9)


def test_any_word_of_the_entry_changes_the_digest() -> None:
    entry = on_resmlp("rebound")
    digests = {judged("rebound", REBOUND)[0]["rule_digest"]}
    changes: list[dict[str, Any]] = [
        {"supported": entry["supported"] + "."},
        {"control": "none"},
        {"rule": entry["rule"] | {"minimum": entry["rule"]["minimum"] | {"seeds": 2}}},
        {"evaluated_on": [NET, NET | {"arch": "other"}]},
    ]
    for change in changes:
        digests.add(evaluated({"rebound": entry | change}, grid(REBOUND), metrics(REBOUND))[0]["rule_digest"])
    assert len(digests) == 1 + len(changes)
    shown = evaluated({"rebound": entry | {"figures": []}}, grid(REBOUND), metrics(REBOUND))
    assert shown[0]["rule_digest"] in digests, "which figure shows a claim is no part of its rule"


def test_rows_fit_the_schema_and_say_what_they_hold_for(tmp_path: Path) -> None:
    rows = evaluated(ENTRIES, grid(MOVING), metrics(MOVING))
    provenance = Provenance("0", "0", {}, SEEDS, "bytes", 1, "cpu", {})
    write_table(tmp_path / "claims.parquet", CLAIMS, rows, provenance)
    assert read_table(tmp_path / "claims.parquet", CLAIMS).num_rows == len(rows)
    first = next(row for row in rows if row["claim"] == "joint_gain")
    assert first["configuration"] == "mnist1d/resmlp, depths 1-8, widths 8-64, M = 4000, final nets, 4 seeds"


def test_every_claim_of_the_config_has_a_rule_that_reads_its_columns() -> None:
    for entry in LEDGER.values():
        columns = [column.format(value=entry["columns"][0]) for column in rule_of(entry["rule"]["kind"]).COLUMNS]
        assert entry["columns"] == columns


def test_the_readme_table_has_a_line_per_claim_net_and_size_in_any_order_of_rows() -> None:
    rows = evaluated({"joint_gain": ENTRIES["joint_gain"]}, grid(FALLING), metrics(FALLING, sd=0))
    text = readme_table(rows)
    assert text == readme_table(reversed(rows))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 2 + 1
    assert lines[2].startswith("| **joint_gain** (depth): Test loss falls when depth and width grow together. |")
    assert "| 4,000 | final, test | supported | -0.200 [-0.200, -0.200] | 4 |" in lines[2]
    assert lines[2].endswith("| best validation, test: supported |")
    assert "not evaluated (the config has no cells of mnist5k/resnet_bn for it)" in lines[4]
