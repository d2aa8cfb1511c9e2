"""A figure may not show what its table does not hold, nor change from run to run, and has to be readable in print."""

import subprocess
import sys
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import read_table, write_table
from jumpboard.claims.statistics import mean_interval, share_interval
from jumpboard.configuration.plan import FITTED
from jumpboard.errors import InputError
from jumpboard.figures.correlation_maps import ordered, share_off_diagonal
from jumpboard.figures.deepest_model import case_of
from jumpboard.figures.panels import spread
from jumpboard.figures.registry import FIGURES, figure_module
from jumpboard.figures.signal_trends import matched_loss, relative_site
from jumpboard.figures.square_axis import log_ticks, square_axis
from jumpboard.figures.style import COLUMN, PAGE, SMALLEST_TEXT, depth_colour, new_figure, save, width_colour
from planted_certificates import SCHEMAS as CERTIFIED
from planted_expansions import SCHEMAS as EXPANDED

Rows = list[dict[str, Any]]
DRAWN = [name for name, entry in FIGURES.items() if entry.table not in {*EXPANDED, *CERTIFIED, *FITTED}]
TRAINED = [name for name in DRAWN if FIGURES[name].table in ("metrics", "curves")]
MEASURED = [name for name in DRAWN if name not in TRAINED]
GRIDS: dict[str, dict[str, Any]] = {
    "one net, one seed": {"depths": (4,), "widths": (8,), "sizes": (500,), "seeds": (0,)},
    "one width, one seed": {"depths": (1, 2, 4), "widths": (8,), "sizes": (500,), "seeds": (0,)},
    "default": {"depths": (1, 2, 4, 8, 16), "widths": (8, 16, 32, 64), "sizes": (4000, 40000), "seeds": (0, 1, 2, 3)},
    "convolutional": {"depths": (3, 6, 9), "widths": (2, 4, 8), "sizes": (500, 3500), "seeds": (0, 1, 2)},
    "large": {
        "depths": (1, 2, 4, 8, 16, 32, 64),
        "widths": (8, 16, 32, 64, 128),
        "sizes": (500, 1000, 2000, 4000, 8000, 16000, 40000),
        "seeds": (0, 1),
    },
}


def sources(depths: Any, widths: Any, sizes: Any, seeds: Any) -> dict[str, Rows]:
    """The columns that figures read of all tables."""
    return trained(depths, widths, sizes, seeds) | measured(depths, widths, max(sizes), seeds)


def trained(depths: Any, widths: Any, sizes: Any, seeds: Any) -> dict[str, Rows]:
    """Tables `metrics` and `curves` with a rebound in depth where data are short."""
    generator = np.random.default_rng(7)
    metrics, curves = [], []
    for depth in depths:
        for width in widths:
            for samples in sizes:
                for seed in seeds:
                    key = {
                        "dataset": "d",
                        "arch": "a",
                        "depth": depth,
                        "width": width,
                        "samples": samples,
                        "seed": seed,
                    }
                    test = 2 / (1 + np.log2(width)) + 0.1 * np.log2(depth) * (1 if samples < 5000 else -1)
                    test = float(1 + test + generator.normal(0, 0.02))
                    gap = 2000 / samples * (1 + np.log2(depth)) ** 0.5
                    losses = {"test_loss": test, "validation_loss": test + 0.01, "generalisation_gap": gap}
                    for checkpoint in ("init", "final"):
                        metrics.append({**key, "checkpoint": checkpoint, "status": "trained", **losses})
                    for step in (0, 500, 1000):
                        for split, floor in (("validation", test), ("train", test - gap)):
                            loss = floor + float(np.exp(-step / 300))
                            curves.append({**key, "split": split, "step": step, "loss": loss, "accuracy": 0.5})
    return {"metrics": metrics, "curves": curves}


def measured(depths: Any, widths: Any, samples: int, seeds: Any) -> dict[str, Rows]:
    """Tables of gradients in which the signal is depth^-0.7, resolved, and most energy lies off the diagonal.

    Correlations, two blocks of even and odd coordinates, are mapped at the deepest nets of the first seed alone.
    """
    generator = np.random.default_rng(11)
    signal, covariance, correlations = [], [], []
    for depth in depths:
        for width in widths:
            for seed in seeds:
                key = {"dataset": "d", "arch": "a", "depth": depth, "width": width, "samples": samples, "seed": seed}
                for checkpoint, size in (("init", 1.0), ("loss_1", 0.3), ("final", 0.1)):
                    for site in range(depth + 1):
                        for split in ("test", "train"):
                            place = {**key, "checkpoint": checkpoint, "site": site, "split": split}
                            square = float(size * width * depth**-0.7 * np.exp(generator.normal(0, 0.1)))
                            squares = {"signal_feature_sq": square, "signal_feature_sq_low": 0.8 * square}
                            squares |= {"feature_scale_free_sq": square / width**2, "signal_rms_sq": 10 * square}
                            signal.append({**place, **squares})
                        energy = float(0.6 + generator.normal(0, 0.02))
                        pairs = {"rho_off": energy, "mean_correlation": 1 / width**0.5}
                        null = {"null_rho_off": 0.001, "null_mean_correlation": 0.03}
                        place = {**key, "checkpoint": checkpoint, "site": site, "split": "test"}
                        covariance.append({**place, **pairs, **null})
                if depth == max(depths) and seed == min(seeds):
                    place = {**key, "checkpoint": "final", "site": depth // 2, "split": "test"}
                    for i, j in combinations(range(width), 2):
                        pair = {"i": i, "j": j, "correlation": 0.5 if (i - j) % 2 == 0 else -0.2}
                        null = {"null_correlation": float(generator.normal(0, 0.02))}
                        correlations.append({**place, **pair, **null})
    return {"signal": signal, "covariance": covariance, "correlations": correlations}


def diverge(tables: dict[str, Rows], **cell: int) -> dict[str, Rows]:
    """The runs of `cell` end as diverged: no finite metric, no finite loss after step 0, no gradients but the first."""
    for name in ("signal", "covariance", "correlations"):
        tables[name] = [
            row
            for row in tables[name]
            if row["checkpoint"] == "init" or any(row[column] != value for column, value in cell.items())
        ]
    for row in tables["metrics"] + tables["curves"]:
        if all(row[name] == value for name, value in cell.items()) and row.get("step") != 0:
            lost = [name for name in row if name.endswith("loss") or name == "generalisation_gap"]
            row.update(dict.fromkeys(lost, float("nan")) | ({"status": "diverged"} if "status" in row else {}))
    return tables


def rows_of(name: str, tables: dict[str, Rows]) -> Rows:
    return figure_module(name).plotted(tables[FIGURES[name].table], "d", "a")


def find(rows: Rows, **labels: Any) -> dict[str, Any]:
    (row,) = [row for row in rows if all(row[name] == value for name, value in labels.items())]
    return row


def texts(figure: Figure) -> list[Text]:
    """All that can be read in a figure: titles, names of axes, labels, legends, ticks within the limits."""
    figure.draw_without_rendering()
    found: list[Text] = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        if axes.get_visible():
            found += [axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label, *axes.texts, *ticks(axes)]
    return [text for text in found if text.get_text() and text.get_visible()]


def ticks(axes: Axes) -> list[Text]:
    shown = []
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        shown += [
            label
            for tick in axis.get_major_ticks()
            if low <= tick.get_loc() <= high
            for label in (tick.label1, tick.label2)
        ]
    return [label for label in shown if label.get_visible() and label.get_text()]


def written(figure: Figure) -> set[str]:
    return {" ".join(text.get_text().split()) for text in texts(figure)}


def assert_apart(those: list[Text]) -> None:
    for one, other in combinations(those, 2):
        assert not Text.get_window_extent(one).overlaps(Text.get_window_extent(other)), (one, other)


def assert_readable(figure: Figure) -> None:
    """Text of 6 pt and more within the page, ticks apart."""
    assert figure.get_figwidth() in (COLUMN, PAGE)
    assert min(one.get_fontsize() for one in texts(figure)) >= SMALLEST_TEXT
    for axes in figure.axes:
        assert_apart(ticks(axes) if axes.get_visible() else [])
    for text in texts(figure):
        box, page = Text.get_window_extent(text), figure.bbox
        assert page.x0 - 1 <= box.x0 < box.x1 <= page.x1 + 1, text
        assert page.y0 - 1 <= box.y0 < box.y1 <= page.y1 + 1, text


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("grid", GRIDS)
def test_every_figure_is_readable_on_every_grid(name: str, grid: str, tmp_path: Path) -> None:
    module = figure_module(name)
    rows = rows_of(name, sources(**GRIDS[grid]))
    write_table(tmp_path / "t.parquet", module.SCHEMA, rows, Provenance("0", "0", {}, (0,), "bytes", 1, "cpu", {}))
    assert_readable(module.draw(read_table(tmp_path / "t.parquet", module.SCHEMA).to_pylist()))


@pytest.mark.parametrize("grid", GRIDS)
def test_unresolved_signals_are_readable_on_every_grid(grid: str) -> None:
    tables = sources(**GRIDS[grid])
    for row in tables["signal"]:
        if row["checkpoint"] == "final":
            row.update(signal_feature_sq=row["signal_feature_sq"] - 0.3, signal_feature_sq_low=-1.0)
    assert_readable(figure_module("signal_decay").draw(rows_of("signal_decay", tables)))


def test_direct_labels_do_not_overlap() -> None:
    figure = figure_module("joint_scaling").draw(rows_of("joint_scaling", sources(**GRIDS["large"])))
    figure.draw_without_rendering()
    for axes in figure.axes[:7]:
        assert len(axes.texts) == 1 + 5  # a heading and five widths
        assert_apart(list(axes.texts))


@pytest.mark.parametrize("name", DRAWN)
def test_a_second_run_writes_the_same_bytes(name: str, tmp_path: Path) -> None:
    """The title's date or a random id in the SVG would make every figure look changed."""
    runs = []
    for run in ("first", "second"):
        figure = figure_module(name).draw(rows_of(name, sources(**GRIDS["convolutional"])))
        svg, png = tmp_path / f"{run}.svg", tmp_path / f"{run}.png"
        save(figure, svg, png, "what it shows")
        runs.append((svg.read_bytes(), png.read_bytes()))
    assert runs[0] == runs[1]
    assert b"<dc:date>" not in runs[0][0]
    assert b"Software" not in runs[0][1]
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".png", ".png", ".svg", ".svg"]


@pytest.mark.parametrize("name", DRAWN)
def test_the_order_of_rows_does_not_matter(name: str) -> None:
    tables = sources(**GRIDS["convolutional"])
    plain = rows_of(name, tables)
    shuffled = rows_of(name, {table: rows[::-1] for table, rows in tables.items()})
    schema = figure_module(name).SCHEMA

    def by_key(rows: Rows) -> Rows:
        return sorted(rows, key=lambda row: tuple(row[key] for key in schema.keys))

    for one, other in zip(by_key(plain), by_key(shuffled), strict=True):
        assert one == pytest.approx(other)


def test_the_style_of_the_session_is_neither_used_nor_changed() -> None:
    rows = rows_of("joint_scaling", sources(**GRIDS["one net, one seed"]))
    with mpl.rc_context({"font.size": 3.0, "xtick.labelsize": 3.0, "axes.facecolor": "red"}):
        figure = figure_module("joint_scaling").draw(rows)
        assert mpl.rcParams["font.size"] == 3.0
    assert figure.axes[0].get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    assert min(one.get_fontsize() for one in texts(figure)) >= SMALLEST_TEXT


def small() -> dict[str, Rows]:
    """Two depths, one width, one size, three seeds with losses that can be followed by hand."""
    tables = sources(depths=(1, 2), widths=(8,), sizes=(500,), seeds=(0, 1, 2))
    values = {1: ([1.0, 1.1, 1.2], [2.0, 2.0, 2.0]), 2: ([1.5, 1.7, 1.3], [3.0, 3.0, 0.5])}  # test, validation
    for row in tables["metrics"]:
        test, validation = (losses[row["seed"]] for losses in values[row["depth"]])
        row.update(test_loss=test, validation_loss=validation, generalisation_gap=test - 0.4)
    return tables


def test_joint_scaling_plots_means_choices_and_rebounds() -> None:
    rows = rows_of("joint_scaling", small())
    shallow, deep = find(rows, depth=1), find(rows, depth=2)
    expected = mean_interval([1.0, 1.1, 1.2])
    assert [shallow[name] for name in ("test_loss", "low", "high", "n")] == pytest.approx(
        [expected.estimate, expected.low, expected.high, 3]
    )
    assert (shallow["chosen"], deep["chosen"]) == (1, 2)  # seed 2 alone tips the others to depth 2
    rebound = mean_interval([0.0, 0.0, 1.3 - 1.2])
    for row in rows:
        assert [row["rebound"], row["rebound_low"], row["rebound_high"]] == pytest.approx(
            [rebound.estimate, rebound.low, rebound.high]
        )
    assert "M = 500 training samples no rebound resolved" in written(figure_module("joint_scaling").draw(rows))


def test_a_diverged_run_counts_as_such_whatever_its_losses() -> None:
    tables = small()
    find(tables["metrics"], depth=1, seed=2, checkpoint="final")["status"] = "diverged"
    row = find(rows_of("joint_scaling", tables), depth=1)
    assert (row["n"], row["diverged"], row["chosen"]) == (2, 1, 2)
    assert row["test_loss"] == pytest.approx(1.05)
    assert row["rebound"] is None


def test_the_map_shows_the_mean_in_each_cell_and_names_the_lowest() -> None:
    rows = rows_of("depth_width_map", small())
    shown = written(figure_module("depth_width_map").draw(rows))
    assert {"1.10", "1.50", "Lowest test loss: 1.10 nats at depth 1, width 8, M = 500 d, a"} <= shown


def test_the_gap_is_that_of_the_table() -> None:
    row = find(rows_of("generalisation_gap", small()), depth=2)
    expected = mean_interval([1.1, 1.3, 0.9])
    assert [row[name] for name in ("generalisation_gap", "low", "high", "n")] == pytest.approx(
        [expected.estimate, expected.low, expected.high, 3]
    )


def test_curves_are_averaged_step_by_step_and_only_over_seeds() -> None:
    tables = small()
    losses = {0: 0.9, 1: 1.2, 2: 1.5}
    for row in tables["curves"]:
        row["loss"] = losses[row["seed"]] + row["depth"] + row["step"] / 1000 + (row["split"] == "train")
    row = find(rows_of("learning_curves", tables), depth=2, split="train", step=500)
    expected = mean_interval([4.4, 4.7, 5.0])
    assert [row[name] for name in ("loss", "low", "high", "n", "diverged")] == pytest.approx(
        [expected.estimate, expected.low, expected.high, 3, 0]
    )


@pytest.mark.parametrize("name", TRAINED)
def test_diverged_runs_are_counted_and_marked(name: str) -> None:
    tables = diverge(
        diverge(sources(**GRIDS["convolutional"]), depth=6, width=4, samples=500, seed=1), depth=9, width=8
    )
    rows = rows_of(name, tables)
    column = {"joint_scaling": "test_loss", "depth_width_map": "test_loss", "learning_curves": "loss"}.get(name, name)
    last = {"split": "validation", "step": 1000} if name == "learning_curves" else {}
    partly = find(rows, depth=6, width=4, samples=500, **last)
    assert (partly["n"], partly["diverged"]) == (2, 1)
    assert np.isfinite(partly[column])
    wholly = find(rows, depth=9, width=8, samples=500, **last)
    assert [wholly[key] for key in (column, "low", "high", "n", "diverged")] == [None, None, None, 0, 3]
    figure = figure_module(name).draw(rows)
    shown = written(figure)
    if name == "depth_width_map":
        assert "3 div." in shown
        assert any(one.endswith(" 1 div.") for one in shown)
    else:
        assert "some seeds diverged" in shown
        crosses = [line for axes in figure.axes for line in axes.lines if line.get_marker() == "X"]
        assert len(crosses) >= 1 + 2  # one partly diverged cell, and one at two sample sizes


@pytest.mark.parametrize("name", DRAWN)
def test_a_net_all_of_whose_runs_diverged_still_has_a_figure(name: str, tmp_path: Path) -> None:
    save(
        figure_module(name).draw(rows_of(name, diverge(sources(**GRIDS["convolutional"])))),
        tmp_path / "f.svg",
        tmp_path / "f.png",
        "what it shows",
    )


@pytest.mark.parametrize("name", ["signal_decay", "off_diagonal_energy"])
def test_runs_that_are_not_measured_are_counted_and_marked(name: str) -> None:
    tables = diverge(diverge(sources(**GRIDS["convolutional"]), depth=6, width=4, seed=1), depth=9, width=8)
    column, statistic = ("signal", "raw") if name == "signal_decay" else ("value", "rho_off")
    last = {"checkpoint": "final", "split": "test"} if name == "signal_decay" else {}
    rows = rows_of(name, tables)
    partly = find(rows, depth=6, width=4, statistic=statistic, **last)
    assert (partly["n"], partly["missing"]) == (2, 1)
    wholly = find(rows, depth=9, width=8, statistic=statistic, **last)
    assert [wholly[key] for key in (column, "low", "high", "n", "missing")] == [None, None, None, 0, 3]
    figure = figure_module(name).draw(rows)
    assert "some seeds missing" in written(figure)
    for axes in figure.axes:
        crosses = [line for line in axes.lines if line.get_marker() == "X"]
        assert len(crosses) == (0 if name == "signal_decay" and axes in figure.axes[2::3] else 2)


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("left", ["nothing", "initial nets"])
def test_a_net_without_measurements_has_a_figure_that_says_so(name: str, left: str) -> None:
    tables = sources(**GRIDS["convolutional"])
    source = [row for row in tables[FIGURES[name].table] if row["checkpoint"] == "init" and left != "nothing"]
    rows = figure_module(name).plotted(source, "d", "a")
    assert rows == []
    assert any("no net was measured at the end" in one for one in written(figure_module(name).draw(rows)))


def test_the_title_speaks_of_a_rebound_only_where_one_is_resolved() -> None:
    tables = sources(**GRIDS["default"])  # short data: loss rises with depth; ample data: it falls
    shown = written(figure_module("joint_scaling").draw(rows_of("joint_scaling", tables)))
    assert "M = 4,000 training samples rebound at widths 8, 16, 32, 64" in shown
    assert "M = 40,000 training samples no rebound resolved" in shown
    assert any(one.endswith("not resolved at M = 40,000 d, a") for one in shown)


def test_colours_depend_on_the_value_alone_and_tell_neighbours_apart() -> None:
    for colour, values in ((width_colour, (2, 4, 8, 16, 32, 64, 128, 256)), (depth_colour, (1, 2, 4, 8, 16, 32, 64))):
        steps = np.diff(np.array([colour(value)[:3] for value in values]), axis=0)
        assert np.linalg.norm(steps, axis=1).min() > 0.1
        grey = np.array([colour(value)[:3] for value in values]) @ [0.299, 0.587, 0.114]
        assert (np.diff(grey) > 0).all()


@pytest.mark.parametrize(
    ("wanted", "placed"),
    [
        ([5.0, 1.0], [5.0, 1.0]),
        ([1.0, 1.0, 1.0], [0.0, 1.0, 2.0]),
        ([9.5, 9.9], [9.0, 10.0]),
        ([-1.0], [0.0]),
    ],
)
def test_labels_are_moved_no_further_than_needed(wanted: list[float], placed: list[float]) -> None:
    assert spread(wanted, gap=1.0, floor=0.0, ceiling=10.0) == pytest.approx(placed)


def test_unknown_figures_and_nets_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"figure 'pie' is not known; accepted: joint_scaling, depth_width_map"):
        figure_module("pie")
    for name in DRAWN:
        table = FIGURES[name].table
        with pytest.raises(InputError, match=rf"table {table} has no .*rows of d/b"):
            figure_module(name).plotted(sources(**GRIDS["one net, one seed"])[table], "d", "b")


def test_the_registry_is_light() -> None:
    """The plan of every run reads it."""
    heavy = "{'matplotlib', 'pyarrow', 'numpy'} & set(sys.modules)"
    command = f"import sys, jumpboard.figures.registry; sys.exit(str({heavy}) if {heavy} else 0)"
    assert subprocess.run([sys.executable, "-c", command]).returncode == 0


@pytest.mark.parametrize(
    ("depths", "place"),
    [
        ((1, 2, 4, 8, 16), Fraction(1, 2)),
        ((3, 6, 9), Fraction(1, 3)),
        ((3, 4, 6), Fraction(1, 2)),
        ((5,), Fraction(2, 5)),
        ((1,), Fraction(0)),
    ],
)
def test_nets_are_compared_at_the_inner_site_that_most_have(depths: tuple[int, ...], place: Fraction) -> None:
    assert relative_site([{"depth": depth, "site": site} for depth in depths for site in range(depth + 1)]) == place


def test_matched_loss_is_the_level_that_most_runs_reached() -> None:
    runs = {"init": (0, 1, 2), "loss_1": (0, 1), "loss_0.5": (0, 1), "loss_0.2": (0,), "final": (0, 1, 2)}
    key = {"depth": 1, "width": 8}
    rows = [{**key, "checkpoint": name, "seed": seed} for name, seeds in runs.items() for seed in seeds]
    assert matched_loss(rows) == "loss_0.5"  # the lowest of two that are as frequent
    assert matched_loss([row for row in rows if not row["checkpoint"].startswith("loss_")]) is None


def squares(values: dict[tuple[int, int], list[float]], low: float = 0.5) -> dict[str, Rows]:
    """Three seeds, one width, depths 2 and 4; (depth, site) -> final held-out squares; the rest is 1 and resolved."""
    tables = sources(depths=(2, 4), widths=(8,), sizes=(500,), seeds=(0, 1, 2))
    for row in tables["signal"]:
        final = (row["checkpoint"], row["split"]) == ("final", "test")
        square = values.get((row["depth"], row["site"]), [1.0] * 3)[row["seed"]] if final else 1.0
        row.update(signal_feature_sq=square, signal_feature_sq_low=square - low, feature_scale_free_sq=square / 2)
    return tables


def test_signal_decay_plots_squares_at_one_site_and_the_largest() -> None:
    tables = squares({(2, 1): [2.0, 4.0, 8.0], (4, 2): [1.0, 1.0, 1.0], (4, 3): [3.0, 5.0, 4.0]})
    rows = rows_of("signal_decay", tables)
    last = {"checkpoint": "final", "split": "test"}
    shallow, deep = (find(rows, depth=depth, statistic="raw", **last) for depth in (2, 4))
    expected, slope = mean_interval([2.0, 4.0, 8.0]), mean_interval([-1.0, -2.0, -3.0])
    assert [shallow[name] for name in ("signal", "low", "high", "n", "relative_site")] == pytest.approx(
        [expected.estimate, expected.low, expected.high, 3, 0.5]
    )
    for row in (shallow, deep):
        assert (row["scale"], row["slope_n"], row["resolved"]) == ("log", 3, True)
        assert [row[name] for name in ("slope", "slope_low", "slope_high")] == pytest.approx(
            [slope.estimate, slope.low, slope.high]
        )
    # three of five sites, as the shallow net has: the one with mean 4 is among them with probability 3/5, else it is 1
    assert find(rows, depth=4, statistic="largest", **last)["signal"] == pytest.approx(0.6 * 4 + 0.4 * 1)
    assert find(rows, depth=2, statistic="scale_free", **last)["signal"] == pytest.approx(14 / 6)
    shown = written(figure_module("signal_decay").draw(rows))
    assert {"raw, at site L/2 nats²/unit²", "at training loss 1", "at the end of training"} <= shown


def test_unresolved_squares_are_marked_and_not_clipped() -> None:
    rows = rows_of("signal_decay", squares({(2, 1): [2.0, 2.0, 2.0], (4, 2): [-0.3, -0.2, 0.2]}))
    row = find(rows, depth=4, statistic="raw", checkpoint="final", split="test")
    assert (row["signal"], row["resolved"], row["scale"]) == (pytest.approx(-0.1), False, "linear")
    size = np.sqrt((3 * 4 + 0.09 + 0.04 + 0.04) / 6)
    assert row["slope"] == pytest.approx(-2.1 / size)
    assert find(rows, depth=4, statistic="raw", checkpoint="loss_1", split="test")["scale"] == "log"
    figure = figure_module("signal_decay").draw(rows)
    panel = figure.axes[1]  # raw, at the end of training
    hollow = [line for line in panel.lines if line.get_marker() == "o" and line.get_markerfacecolor() == "white"]
    assert [float(np.asarray(line.get_ydata())[0]) for line in hollow] == pytest.approx([row["signal"]])
    assert panel.get_ylim()[0] < row["signal"]
    assert panel.get_yscale() != "log"
    assert "not resolved from 0" in written(figure)


def test_the_slope_is_the_planted_power_at_every_width() -> None:
    rows = rows_of("signal_decay", sources(**GRIDS["default"]))
    for row in rows:
        if row["statistic"] == "raw":
            assert abs(row["slope"] + 0.7) < 0.15
            assert row["mean_slope_low"] < row["mean_slope"] < row["mean_slope_high"] < 0
    title = "Held-out signal by depth, at training loss 1 and at the end of training: all three fall d, a"
    assert title in written(figure_module("signal_decay").draw(rows))


def test_a_slope_rests_on_seeds_that_have_the_whole_line() -> None:
    tables = diverge(squares({(2, 1): [2.0, 4.0, 8.0]}), depth=4, seed=2)
    row = find(rows_of("signal_decay", tables), depth=2, statistic="raw", checkpoint="final", split="test")
    assert (row["n"], row["slope_n"], row["slope"]) == (3, 2, pytest.approx(-1.5))


@pytest.mark.parametrize(
    ("means", "unresolved", "scale"),
    [([0.01, 3.0], [], "log"), ([-0.1, 0.2, 0.3], [-0.1], "linear"), ([-0.1, 0.2, 90.0], [-0.1], "symlog")],
)
def test_the_axis_of_squares_shows_every_mean(means: list[float], unresolved: list[float], scale: str) -> None:
    axes = new_figure(COLUMN, 2).subplots()
    square_axis(axes, means, [1.1 * max(means)], unresolved)
    low, high = axes.get_ylim()
    assert axes.get_yscale() == scale
    assert low < min(means) <= max(means) < high
    assert 2 <= sum(low <= tick <= high for tick in axes.get_yticks()) <= 8


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0.009, 110, [0.01, 0.1, 1, 10, 100]), (0.9, 40, [1, 3, 10, 30]), (1e-9, 2, [1e-9, 1e-7, 1e-5, 1e-3, 0.1])],
)
def test_ticks_of_a_log_axis_are_round_and_few(low: float, high: float, ticks: list[float]) -> None:
    assert log_ticks(low, high) == pytest.approx(ticks)


def test_sites_are_counted_by_what_a_block_would_find_there() -> None:
    """Depth 2: site 0 resolved; site 1 not, with gradients; site 2 with gradients of a thousandth, or just below."""
    tables = sources(depths=(2,), widths=(8,), sizes=(500,), seeds=(0, 1, 2))
    for row in tables["signal"]:
        begun = row["checkpoint"] == "init"
        vanished = row["site"] == 2 and not begun
        root = (0.999e-3 if row["seed"] == 0 else 1e-3) if vanished else 1.0
        row.update(signal_rms_sq=4 * root**2, signal_feature_sq_low=0.1 if row["site"] == 0 else -0.1)
    rows = rows_of("deepest_model", tables)
    for case, shares in (("direction", [1 / 3] * 3), ("unseen", [1 / 3, 2 / 3, 2 / 3]), ("none", [1 / 3, 0, 0])):
        row, expected = find(rows, case=case), share_interval(shares)
        assert [row[name] for name in ("share", "low", "high", "n", "missing")] == pytest.approx(
            [expected.estimate, expected.low, expected.high, 3, 0]
        )
    figure = figure_module("deepest_model").draw(rows)
    assert "A descent direction is resolved at 33% of sites at depth 2; by luck alone at 5% d, a" in written(figure)
    heights = [patch.get_height() for patch in figure.axes[0].patches]
    assert heights == pytest.approx([1 / 3, 5 / 9, 1 / 9])


@pytest.mark.parametrize("row", [{"signal_feature_sq_low": None}, {"signal_feature_sq_low": 0.0}])
def test_a_signal_without_limits_or_with_0_in_them_is_not_resolved(row: dict[str, Any]) -> None:
    assert case_of(row | {"signal_rms_sq": 1.0}, 1.0) == "unseen"


def test_a_seed_that_was_not_measured_at_init_has_no_case() -> None:
    tables = sources(depths=(2,), widths=(8,), sizes=(500,), seeds=(0, 1, 2))
    kept = [row for row in tables["signal"] if (row["seed"], row["checkpoint"]) != (1, "init")]
    row = find(rows_of("deepest_model", {"signal": kept}), case="direction")
    assert (row["n"], row["missing"]) == (2, 1)


def test_off_diagonal_energy_is_averaged_over_sites_then_seeds() -> None:
    tables = measured(depths=(1, 2), widths=(8,), samples=500, seeds=(0, 1))
    for row in tables["covariance"]:
        row.update(rho_off=0.2 + 0.1 * row["site"] + 0.02 * row["seed"], null_rho_off=-0.01 * row["site"])
        row.update(mean_correlation=None if row["site"] == 0 else 0.3)
    rows = rows_of("off_diagonal_energy", tables)
    expected = mean_interval([0.3, 0.32])
    energy = find(rows, depth=2, statistic="rho_off")
    assert [energy[name] for name in ("value", "low", "high", "null_value", "n")] == pytest.approx(
        [expected.estimate, expected.low, expected.high, -0.01, 2]
    )
    assert find(rows, depth=2, statistic="mean_correlation")["value"] == pytest.approx(0.3)
    figure = figure_module("off_diagonal_energy").draw(rows)
    assert "near-diagonal below 0.5" in written(figure)
    title = "Share of gradient covariance off the diagonal: 0.26 to 0.31; above 0.5 in 0, below in 2 of 2 nets d, a"
    assert title in written(figure)
    for axes in figure.axes[:2]:
        assert axes.get_ylim()[0] < -0.01
        assert any(set(np.asarray(line.get_ydata(), dtype=float)) == {0.5} for line in axes.lines)


def test_correlation_maps_show_few_nets_and_both_sides_alike() -> None:
    rows = rows_of("correlation_maps", sources(**GRIDS["default"]))
    assert {(row["width"], row["depth"], row["site"], row["seed"]) for row in rows} == {
        (width, 16, 8, 0) for width in (8, 32, 64)
    }
    for width in (8, 32, 64):
        for side in ("gradients", "samples permuted"):
            pairs = [row for row in rows if (row["width"], row["side"]) == (width, side)]
            assert len({frozenset((row["i"], row["j"])) for row in pairs}) == len(pairs) == width * (width - 1) // 2
    near = {
        row["correlation"]
        for row in rows
        if row["side"] == "gradients" and row["width"] == 8 and row["row"] < 3 and row["column"] < 4
    }
    assert near == {0.5}, "coordinates of one block are not neighbours"


def test_the_deepest_measured_net_is_mapped_where_deeper_ones_are_not() -> None:
    tables = sources(depths=(2, 4), widths=(2, 4), sizes=(500,), seeds=(0, 1))
    kept = [row for row in tables["correlations"] if row["width"] == 2]
    kept += [{**row, "depth": 2, "site": 1, "seed": 1} for row in tables["correlations"] if row["width"] == 4]
    rows = rows_of("correlation_maps", {"correlations": kept})
    assert {(row["width"], row["depth"], row["seed"]) for row in rows} == {(2, 4, 0), (4, 2, 1)}


def test_order_and_share_of_a_planted_matrix() -> None:
    """Coordinates 0, 2, 4 go together, and so do 1, 3, 5; between the two there is nothing."""
    matrix = np.array([[1.0 if i == j else 0.5 * ((i - j) % 2 == 0) for j in range(6)] for i in range(6)])
    first = ordered(matrix)[:3]
    assert {place % 2 for place in first} in ({0}, {1})
    assert share_off_diagonal(matrix) == pytest.approx(12 * 0.25 / (6 + 12 * 0.25))
    assert share_off_diagonal(np.eye(4)) == 0


def test_maps_of_a_wide_net_stay_small(tmp_path: Path) -> None:
    """Cells drawn one by one would make megabytes."""
    rows = rows_of("correlation_maps", measured(depths=(4,), widths=(64, 128, 160), samples=500, seeds=(0,)))
    save(figure_module("correlation_maps").draw(rows), tmp_path / "f.svg", tmp_path / "f.png", "what it shows")
    assert (tmp_path / "f.svg").stat().st_size < 300_000
