"""Figures of expansions: a mean over the wrong arm, kind of jumpboard or split looks as plausible as the right one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import read_table, write_table
from jumpboard.claims.statistics import in_words, mean_interval
from jumpboard.errors import InputError
from jumpboard.figures.arm_differences import _limits
from jumpboard.figures.expanded import ARMS, seeds_of
from jumpboard.figures.first_order_gain import ratios
from jumpboard.figures.registry import FIGURES, figure_module
from jumpboard.figures.style import save
from planted_expansions import (
    BEST,
    GAINS,
    LENGTH,
    SCHEMAS,
    STEPS,
    chains,
    expansions,
    jumpboards,
    nets,
    planted,
    step_gains,
    widenings,
)
from test_figures import GRIDS, assert_readable, find, written

Rows = list[dict[str, Any]]
NAMES = [name for name, entry in FIGURES.items() if entry.table in SCHEMAS]
PROVENANCE = Provenance("0", "0", {}, (0,), "bytes", 1, "cpu", {})
SMALL = {"depths": (1, 2), "widths": (8, 16), "seeds": (0, 1, 2)}


def tables(grid: str) -> dict[str, Rows]:
    sizes = GRIDS[grid]
    depths = [depth for depth in sizes["depths"] if depth <= 16]  # sites are as many as blocks
    return planted(depths, sizes["widths"], max(sizes["sizes"]), sizes["seeds"])


def runs(
    depths: tuple[int, ...] = (1, 2), widths: tuple[int, ...] = (8, 16), seeds: tuple[int, ...] = (0, 1, 2)
) -> Rows:
    return list(nets(depths, widths, 500, seeds))


def rows_of(name: str, source: Rows) -> Rows:
    return figure_module(name).plotted(source, "d", "a")


def told(row: dict[str, Any], name: str) -> list[Any]:
    return [row[column] for column in (name, "low", "high", "n", "missing")]


def expected(values: list[float], missing: int = 0) -> Any:
    interval = mean_interval(values)
    return pytest.approx([interval.estimate, interval.low, interval.high, interval.n, missing])


@pytest.mark.parametrize("grid", GRIDS)
def test_every_figure_is_readable_on_every_grid(grid: str, tmp_path: Path) -> None:
    source = tables(grid)
    for name in NAMES:
        module = figure_module(name)
        write_table(tmp_path / name, module.SCHEMA, rows_of(name, source[FIGURES[name].table]), PROVENANCE)
        assert_readable(module.draw(read_table(tmp_path / name, module.SCHEMA).to_pylist()))


def test_planted_rows_fit_their_schemas(tmp_path: Path) -> None:
    """Else these tests are about tables that no stage can write."""
    for name, rows in planted(**SMALL, samples=500).items():
        write_table(tmp_path / name, SCHEMAS[name], rows, PROVENANCE)


@pytest.mark.parametrize("name", NAMES)
def test_order_of_rows_does_not_matter_and_bytes_are_the_same(name: str, tmp_path: Path) -> None:
    source, pictures = planted(**SMALL, samples=500)[FIGURES[name].table], []
    schema = figure_module(name).SCHEMA
    for run, rows in enumerate((source, source[::-1])):
        drawn = sorted(rows_of(name, rows), key=lambda row: tuple(row[key] for key in schema.keys))
        svg, png = tmp_path / f"{run}.svg", tmp_path / f"{run}.png"
        save(figure_module(name).draw(drawn), svg, png, figure_module(name).CAPTION)
        pictures.append((drawn, svg.read_bytes(), png.read_bytes()))
    for one, other in zip(pictures[0][0], pictures[1][0], strict=True):
        assert one == pytest.approx(other)
    assert pictures[0][1:] == pictures[1][1:]


@pytest.mark.parametrize("name", NAMES)
def test_a_net_without_expansions_has_a_figure_that_says_so(name: str) -> None:
    assert rows_of(name, []) == []
    assert any("no net was expanded" in one for one in written(figure_module(name).draw([])))
    with pytest.raises(InputError, match=f"table {FIGURES[name].table} has no rows of d/other"):
        figure_module(name).plotted(planted(**SMALL, samples=500)[FIGURES[name].table], "d", "other")


@pytest.mark.parametrize("name", NAMES)
def test_the_largest_number_of_samples_is_shown(name: str) -> None:
    table = FIGURES[name].table
    few, many = (planted(**SMALL, samples=samples)[table] for samples in (500, 4000))
    assert rows_of(name, few + many) == rows_of(name, many)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_that_a_cell_lacks_is_counted_and_marked(name: str) -> None:
    source = planted(**SMALL, samples=500)[FIGURES[name].table]
    rows = rows_of(name, [row for row in source if (row["depth"], row["width"], row["seed"]) != (2, 16, 1)])
    for row in rows:
        assert (row["n"], row["missing"]) == ((2, 1) if (row["depth"], row["width"]) == (2, 16) else (3, 0))
    figure = figure_module(name).draw(rows)
    if name not in ("first_order_gain", "gain_by_site"):
        assert any(line.get_marker() == "X" for axes in figure.axes for line in axes.lines)
        assert "some seeds missing" in written(figure)


@pytest.mark.parametrize("lost", ["a cell", "the net"])
@pytest.mark.parametrize("name", NAMES)
def test_seeds_that_all_diverged_leave_a_figure(name: str, lost: str, tmp_path: Path) -> None:
    """Losses and gains that are not finite take no part in any mean."""
    source = planted(**SMALL, samples=500)[FIGURES[name].table]
    numbers = ("gain", "delta_erm", "delta_r_test", "transfer", "signal_feature_sq")
    cells = {(2, 16)} if lost == "a cell" else {(row["depth"], row["width"]) for row in source}
    for row in source:
        if (row["depth"], row["width"]) in cells:
            own = [column for column in row if column in numbers or column.startswith("net_")]
            row.update(dict.fromkeys(own, float("nan")))
    rows = rows_of(name, source)
    for row in rows:
        assert row["n"] == (0 if (row["depth"], row["width"]) in cells else 3)
    save(figure_module(name).draw(rows), tmp_path / "f.svg", tmp_path / "f.png", "what it shows")


def test_a_cell_holds_all_seeds_of_its_net() -> None:
    rows = [{"depth": 1, "width": 8, "seed": 0}, {"depth": 2, "width": 8, "seed": 3}]
    assert seeds_of(rows) == {(1, 8): {0: rows[:1], 3: []}, (2, 8): {0: [], 3: rows[1:]}}


def test_gains_by_site_are_held_out_gains_of_train_jumpboards() -> None:
    source = jumpboards(runs())
    rows = rows_of("gain_by_site", source)
    for direction in ("steepest", "shuffled"):
        place = {"depth": 2, "width": 16, "site": 1, "direction": direction}
        wanted = place | {"jumpboard": "train", "split": "test"}
        gains = [row["gain"] for row in source if wanted.items() <= row.items()]
        row = find(rows, **place)
        assert told(row, "gain") == expected(gains)
        assert row["relative_site"] == 0.5
    shown = written(figure_module("gain_by_site").draw(rows))
    assert {"depth 1", "depth 2", "random", "orthogonal", "shuffled labels", "width 16"} <= shown
    (title,) = (one for one in shown if one.startswith("Held-out gain of jumpboards at 10 of 10 sites"))
    above = sum(row["low"] > 0 for row in rows if row["direction"] != "steepest")
    assert (
        title == f"Held-out gain of jumpboards at 10 of 10 sites; of their controls at {above} of 30 (luck: 5 %) d, a"
    )


def test_predicted_and_realised_gains_are_those_of_test_rows_and_train_directions() -> None:
    source = step_gains(runs())
    rows = rows_of("first_order_gain", source)
    place = {"depth": 2, "width": 8, "site": 2, "step": 3}
    own = [row for row in source if (place | {"jumpboard": "train", "split": "test"}).items() <= row.items()]
    row = find(rows, **place)
    assert told(row, "gain") == expected([one["gain"] for one in own])
    assert row["predicted_gain"] == pytest.approx(np.mean([one["predicted_gain"] for one in own]))
    assert row["relative_eta"] == pytest.approx(STEPS[3])


def test_half_of_the_prediction_is_left_at_the_best_step_of_a_parabola() -> None:
    rows = rows_of("first_order_gain", step_gains(runs()))
    for step, found in ratios(rows).items():
        assert np.median(found) == pytest.approx(1 - step / (2 * BEST), abs=0.02)
    losing = [row | {"predicted_gain": -row["predicted_gain"]} for row in rows]
    assert ratios(losing) == {}
    assert "No site is predicted to gain on held-out samples d, a" in written(
        figure_module("first_order_gain").draw(losing)
    )
    shown = written(figure_module("first_order_gain").draw(rows))
    first, *_ = ratios(rows).values()
    (title,) = (
        one for one in shown if one.startswith(f"Realised over predicted gain: {np.median(first):.2f} at a step")
    )
    assert title.startswith(title.split(", ")[0] + ", below a half from 0.")
    assert {"as predicted", "best step", "no gain"} <= shown


def test_parts_of_a_gain_are_means_over_sites_and_add_up() -> None:
    source = expansions(runs(depths=(2, 4)))
    rows = rows_of("gain_decomposition", source)
    for depth in (2, 4):
        parts = {row["statistic"]: row["value"] for row in rows if (row["depth"], row["width"]) == (depth, 16)}
        assert parts["delta_r_test"] + parts["delta_erm"] + parts["minus_transfer"] == pytest.approx(parts["gain"])
    own = [row for row in source if (row["arm"], row["jumpboard"]) == ("jumpboard_all", "train")]
    own = [row for row in own if (row["depth"], row["width"]) == (4, 8)]
    by_seed = [float(np.mean([row["gain"] for row in own if row["seed"] == seed])) for seed in (0, 1, 2)]
    assert told(find(rows, depth=4, width=8, statistic="gain"), "value") == expected(by_seed)
    assert find(rows, depth=4, width=8, statistic="delta_erm")["value"] == pytest.approx(0.2 * 4 / 5)
    figure = figure_module("gain_decomposition").draw(rows)
    bars = [patch.get_height() for patch in figure.axes[0].patches]
    assert len(bars) == 2 * 4
    (title,) = (one for one in written(figure) if one.startswith("Mean gain of an expansion"))
    mean = np.mean([row["value"] for row in rows if row["statistic"] == "gain"])
    assert title.startswith(f"Mean gain of an expansion {mean:+.3f} nats: jumpboard +0.002, training +0.")


@pytest.mark.parametrize("name", ["gain_over_training_on", "gain_over_training_on_width"])
def test_arms_stand_against_the_old_net_trained_on(name: str) -> None:
    wide = name.endswith("width")
    source = (widenings if wide else expansions)(runs(), sd=0)
    rows = rows_of(name, source)
    gains = {"widened": 0.03, "scratch": -0.08} if wide else {arm: gain - 0.03 for arm, gain in GAINS.items()}
    gains.pop("trained_on", None)
    if not wide:
        gains["scratch"] = -0.13
    assert {row["arm"] for row in rows} == set(gains)
    for row in rows:
        scale = 1.0 if wide else np.log2(row["width"])
        assert row["difference"] == pytest.approx(gains[row["arm"]] * scale)
    shown = written(figure_module(name).draw(rows))
    what = "New width" if wide else "A new block"
    assert f"{what} beats training on in 4, loses to it in 0 of 4 nets d, a" in shown
    assert {"old net trained on", *(ARMS[arm].name for arm in gains)} <= shown


def test_a_run_whose_old_net_diverged_when_trained_on_has_no_difference() -> None:
    source = expansions(runs())
    for row in source:
        if (row["arm"], row["depth"], row["width"], row["seed"]) == ("trained_on", 2, 8, 1):
            row["gain"] = float("nan")
    for row in rows_of("gain_over_training_on", source):
        assert (row["n"], row["missing"]) == ((2, 1) if (row["depth"], row["width"]) == (2, 8) else (3, 0))


def test_nets_from_scratch_far_off_are_told_and_leave_the_others_apart() -> None:
    rows = rows_of("gain_over_training_on", expansions(runs(), sd=0, scratch=-3.0))
    low, high = _limits(rows)
    near = [row["difference"] for row in rows if row["arm"] != "scratch"]
    assert low < min(near) < max(near) < high
    assert max(near) - min(near) > (high - low) / 3
    shown = written(figure_module("gain_over_training_on").draw(rows))
    assert {"\u22129.09", "\u221212.12"} <= shown


def test_a_chain_shows_losses_and_signals_by_number_of_blocks() -> None:
    source = chains(runs(depths=(2,)))
    rows = rows_of("chain", source)
    first, own = ([row for row in source if (row["width"], row["k"]) == (16, k)] for k in (0, 2))
    for split in ("test", "fresh", "train"):
        row, name = find(rows, width=16, k=2, statistic=split), f"net_{split}_loss"
        assert told(row, "value") == expected([one[name] - begun[name] for one, begun in zip(own, first, strict=True)])
        assert row["level"] == pytest.approx(np.mean([one[name] for one in own]))
    signal = find(rows, width=16, k=2, statistic="signal")
    assert told(signal, "value") == expected([one["signal_feature_sq"] for one in own])
    resolved = {row["k"]: row["resolved"] for row in rows if (row["width"], row["statistic"]) == (16, "signal")}
    assert resolved == {k: k < LENGTH for k in range(LENGTH + 1)}
    figure = figure_module("chain").draw(rows)
    hollow = [
        line for line in figure.axes[2].lines if line.get_marker() == "o" and line.get_markerfacecolor() == "white"
    ]
    assert [float(np.asarray(line.get_xdata())[0]) for line in hollow] == [LENGTH]
    shown = written(figure)
    assert {"width 8, depth 2", "width 16, depth 2", "not resolved from 0", "fresh samples"} <= shown
    assert "Test loss falls in 2, rises in 0 of 2 nets after 4 more blocks d, a" in shown
    (loss,) = (row for row in rows if (row["width"], row["k"], row["statistic"]) == (16, LENGTH, "test"))
    change = in_words(loss["value"], loss["low"], loss["high"]).replace("-", "\u2212")
    alone = written(figure_module("chain").draw([row for row in rows if row["width"] == 16]))
    assert any(one.startswith(f"Test loss changes by {change} nats after 4 more blocks, squared sig") for one in alone)


def test_a_chain_without_fresh_samples_or_with_many_nets_is_drawn() -> None:
    source = [row | {"net_fresh_loss": None} for row in chains(runs(depths=(1, 2, 4), widths=(8, 16, 32)))]
    rows = rows_of("chain", source)
    assert {row["statistic"] for row in rows} == {"train", "test", "signal"}
    shown = {(row["depth"], row["width"]) for row in rows}
    assert len(shown) == 4
    assert {(1, 8), (4, 32)} <= shown, "the narrowest and shallowest, and the widest and deepest"
    assert "fresh samples" not in written(figure_module("chain").draw(rows))
