"""A figure may not show what its table does not hold, nor change from run to run, and has to be readable in print."""

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
from jumpboard.claims.statistics import mean_interval
from jumpboard.errors import InputError
from jumpboard.figures.panels import spread
from jumpboard.figures.registry import FIGURES, figure_module
from jumpboard.figures.style import COLUMN, PAGE, SMALLEST_TEXT, depth_colour, save, width_colour

Rows = list[dict[str, Any]]
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
    """Tables `metrics` and `curves` (the columns that figures read) with a rebound in depth where data are short."""
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


def diverge(tables: dict[str, Rows], **cell: int) -> dict[str, Rows]:
    """The runs of `cell` end as diverged: no finite metric, no finite loss after step 0."""
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


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("grid", GRIDS)
def test_every_figure_is_readable_on_every_grid(name: str, grid: str, tmp_path: Path) -> None:
    module = figure_module(name)
    rows = rows_of(name, sources(**GRIDS[grid]))
    write_table(tmp_path / "t.parquet", module.SCHEMA, rows, Provenance("0", "0", {}, (0,), "bytes", 1, "cpu", {}))
    figure = module.draw(read_table(tmp_path / "t.parquet", module.SCHEMA).to_pylist())
    assert figure.get_figwidth() in (COLUMN, PAGE)
    assert min(one.get_fontsize() for one in texts(figure)) >= SMALLEST_TEXT
    for axes in figure.axes:
        assert_apart(ticks(axes) if axes.get_visible() else [])
    for text in texts(figure):
        box, page = Text.get_window_extent(text), figure.bbox
        assert page.x0 - 1 <= box.x0 < box.x1 <= page.x1 + 1, text
        assert page.y0 - 1 <= box.y0 < box.y1 <= page.y1 + 1, text


def test_direct_labels_do_not_overlap() -> None:
    figure = figure_module("joint_scaling").draw(rows_of("joint_scaling", sources(**GRIDS["large"])))
    figure.draw_without_rendering()
    for axes in figure.axes[:7]:
        assert len(axes.texts) == 1 + 5  # a heading and five widths
        assert_apart(list(axes.texts))


@pytest.mark.parametrize("name", FIGURES)
def test_a_second_run_writes_the_same_bytes(name: str, tmp_path: Path) -> None:
    """Symptoms, row 19. The title's date or a random id in the SVG would make every figure look changed."""
    runs = []
    for run in ("first", "second"):
        figure = figure_module(name).draw(rows_of(name, sources(**GRIDS["convolutional"])))
        svg, png = tmp_path / f"{run}.svg", tmp_path / f"{run}.png"
        save(figure, svg, png)
        runs.append((svg.read_bytes(), png.read_bytes()))
    assert runs[0] == runs[1]
    assert b"<dc:date>" not in runs[0][0]
    assert b"Software" not in runs[0][1]
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".png", ".png", ".svg", ".svg"]


@pytest.mark.parametrize("name", FIGURES)
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


@pytest.mark.parametrize("name", FIGURES)
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


@pytest.mark.parametrize("name", FIGURES)
def test_a_net_all_of_whose_runs_diverged_still_has_a_figure(name: str, tmp_path: Path) -> None:
    save(
        figure_module(name).draw(rows_of(name, diverge(sources(**GRIDS["convolutional"])))),
        tmp_path / "f.svg",
        tmp_path / "f.png",
    )


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
    for name, entry in FIGURES.items():
        with pytest.raises(InputError, match=rf"table {entry.table} has no .*rows of d/b"):
            figure_module(name).plotted(sources(**GRIDS["one net, one seed"])[entry.table], "d", "b")
