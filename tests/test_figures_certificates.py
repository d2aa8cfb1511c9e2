"""Figures of certificates: a bound that says nothing must not look like one that does."""

from pathlib import Path

import pytest

from jumpboard.errors import InputError
from jumpboard.figures.registry import FIGURES, figure_module
from jumpboard.figures.style import save
from jumpboard.theory.uniform import Complexity
from planted_certificates import GAIN, SCHEMAS, SLACKS, ladders, not_applicable, routes
from planted_expansions import Rows, nets
from test_figures import assert_readable, written

NAMES = [name for name, entry in FIGURES.items() if entry.table in SCHEMAS]


def source(name: str, depths: tuple[int, ...] = (1, 2), samples: int = 4000) -> Rows:
    runs = list(nets(depths, (2, 4), samples, (0, 1, 2)))
    return routes(runs) if FIGURES[name].table == "routes" else ladders(runs)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("depths", [(1,), (1, 2), (1, 2, 4, 8)])
def test_every_figure_is_readable(name: str, depths: tuple[int, ...]) -> None:
    module = figure_module(name)
    assert_readable(module.draw(module.plotted(source(name, depths), "d", "a")))


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_rows_does_not_matter_and_bytes_are_the_same(name: str, tmp_path: Path) -> None:
    module, pictures = figure_module(name), []
    for run, rows in enumerate((source(name), source(name)[::-1])):
        svg, png = tmp_path / f"{run}.svg", tmp_path / f"{run}.png"
        save(module.draw(module.plotted(rows, "d", "a")), svg, png, module.CAPTION)
        pictures.append((svg.read_bytes(), png.read_bytes()))
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_net_without_expansions_has_a_figure_that_says_so(name: str) -> None:
    module = figure_module(name)
    assert module.plotted([], "d", "a") == []
    assert any("no net" in one for one in written(module.draw([])))
    with pytest.raises(InputError, match=f"table {FIGURES[name].table} has no rows of d/other"):
        module.plotted(source(name), "d", "other")


def test_nets_that_no_route_covers_are_said_to_be_so() -> None:
    runs = list(nets((1, 2), (2,), 4000, (0, 1)))
    for name in ("route_terms", "vacuity_map"):
        module = figure_module(name)
        rows = module.plotted(not_applicable(routes(runs)), "d", "a")
        assert any("cover" in one for one in written(module.draw(rows)))
    module = figure_module("certificate_ladder")
    figure = module.draw(module.plotted(ladders(runs, covered=False), "d", "a"))
    assert "not applicable" in written(figure)
    assert any("do not cover this net" in one for one in written(figure))


def test_the_ladder_shows_slack_beside_gain() -> None:
    rows = figure_module("certificate_ladder").plotted(source("certificate_ladder"), "d", "a")
    for row in rows:
        expected = (0.001, 0.002) if row["rung"] == "step_grid" else (SLACKS[row["rung"]], GAIN)
        assert (row["slack"], row["gain"]) == expected
        assert row["certified"] == (0.0 if row["rung"] == "route_b" else 1.0)


def test_terms_add_up_to_the_margin() -> None:
    for row_of in ("A", "B"):
        rows = figure_module("route_terms").plotted(source("route_terms"), "d", "a")
        own = {
            row["statistic"]: row["value"]
            for row in rows
            if (row["route"], row["depth"], row["width"]) == (row_of, 1, 2)
        }
        assert own["margin"] == pytest.approx(0.3 if row_of == "A" else 0.15)
        assert own["price"] == pytest.approx(-0.2 if row_of == "A" else -0.4)
        assert own["jumpboard"] + own["training"] + own["price"] == pytest.approx(own["margin"])
    assert {(row["expansions"], row["promised"], row["violated"]) for row in rows} == {(6, 6, 0), (9, 9, 0)}


def test_the_map_is_that_of_the_largest_constant() -> None:
    rows = figure_module("vacuity_map").plotted(source("vacuity_map"), "d", "a")
    grid = [row for row in rows if row["kind"] == "map"]
    for row in grid[:: len(grid) // 7]:
        whole = Complexity(row["parameters"], 5, 9.0, 2e6, 1.41, 2.0)
        assert row["vacuity"] == pytest.approx(whole.deviation(row["train_samples"], 0.05) / 2)
    assert [(row["parameters"], row["vacuity"]) for row in rows if row["kind"] == "net"] == [(120, 0.05), (240, 0.05)]
