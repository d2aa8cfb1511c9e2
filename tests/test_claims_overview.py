"""The picture of all claims is read before any number: no verdict may be left out of it or stand on the wrong side."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumpboard.claims import width_raises_observability
from jumpboard.claims.controls import permute_widths
from jumpboard.claims.lines import grouped
from jumpboard.claims.observations import Observations
from jumpboard.claims.statistics import mean_interval, share_interval
from jumpboard.configuration.load import load_files, resolve
from jumpboard.configuration.validation import checkout
from jumpboard.errors import InputError
from jumpboard.figures.claims_overview import CAPTION, EDGE, VERDICTS, draw, plotted, positions
from jumpboard.figures.style import save

Row = dict[str, Any]


def claim_row(claim: str = "gain", verdict: str = "supported", **changed: Any) -> Row:
    row: Row = {
        "claim": claim, "dataset": "d", "arch": "a", "samples": 4000, "checkpoint": "final", "split": "test",
        "paper": "depth", "verdict": verdict, "reason": "", "estimate": 0.3, "low": 0.2, "high": 0.4, "n": 4,
        "supports_from": 0.0, "supports_to": None,
    }  # fmt: skip
    return row | changed


def unjudged(claim: str = "later", **changed: Any) -> Row:
    empty = {"estimate": None, "low": None, "high": None, "n": 0, "reason": "no rule makes table alignment yet"}
    return claim_row(claim, "not evaluated", **empty, **changed)


@pytest.mark.parametrize(
    ("bounds", "interval", "expected"),
    [
        ((0.0, None), (0.3, 0.2, 0.4), (3, 2, 4)),
        ((None, 0.0), (-0.3, -0.4, -0.2), (3, 2, 4)),
        ((None, 0.0), (0.3, 0.2, 0.4), (-3, -4, -2)),
        ((0.5, None), (0.5, 0.0, 1.0), (0, -1, 1)),
        ((0.9, 1.1), (1.0, 0.95, 1.05), (2, 1, 2)),
        ((0.9, 1.1), (1.2, 1.15, 1.25), (-2, -3, -1)),
        ((0.0, None), (0.0, 0.0, 0.0), (0, 0, 0)),
        ((0.5, None), (0.0, 0.0, 0.0), (-2 * EDGE, -2 * EDGE, -2 * EDGE)),
        ((0.0, None), (0.3, None, None), (None, None, None)),
        ((None, None), (0.3, 0.2, 0.4), (None, None, None)),
    ],
)
def test_positions_count_half_intervals_from_the_limit_towards_the_claim(
    bounds: tuple[Any, Any], interval: tuple[Any, Any, Any], expected: tuple[Any, Any, Any]
) -> None:
    row = dict(zip(("supports_from", "supports_to"), bounds, strict=True))
    row |= dict(zip(("estimate", "low", "high"), interval, strict=True))
    assert list(positions(row).values()) == pytest.approx(list(expected))


def test_a_line_is_the_final_net_on_the_test_split_with_the_others_beside_it() -> None:
    rows = [claim_row(verdict="contradicted", split="train"), claim_row(checkpoint="loss_1", verdict="inconclusive")]
    rows += [claim_row(), claim_row(samples=0), unjudged()]
    (first, second, third) = plotted(rows)
    assert [row["verdict"] for row in (first, second, third)] == ["supported", "supported", "not evaluated"]
    assert first["samples"] == 0
    assert (second["others"], first["others"]) == ("inconclusive; contradicted", "")
    assert plotted(list(reversed(rows))) == plotted(rows)
    assert [len(line) for line in grouped(rows)] == [1, 3, 1]


def test_every_line_is_written_with_its_verdict_its_numbers_and_apart_from_its_neighbours(tmp_path: Path) -> None:
    """Two papers, all verdicts, estimates far beyond the panel on both sides, one without limits, and long names."""
    rows = [
        claim_row(),
        claim_row("far", estimate=9.0, low=8.9, high=9.1),
        claim_row("against", "contradicted", estimate=-9.0, low=-9.1, high=-8.9),
        claim_row("one_seed", "inconclusive", low=None, high=None, n=1, reason="not resolved"),
        claim_row("a_claim_with_a_name_that_is_longer_than_its_column", dataset="a_data_set_with_a_long_name"),
        unjudged(paper="width"),
    ]
    figure = draw(plotted(rows))
    figure.draw_without_rendering()
    board, panel = figure.axes
    texts = [text.get_text() for text in board.texts]
    assert {
        "Paper depth",
        "Paper width",
        "gain",
        "0.300 [0.200, 0.400]",
        "0.300",
        "\u22129.000 [\u22129.100, \u22128.900]",
    } <= {*texts}
    assert sum(text in VERDICTS for text in texts) == len(rows)
    assert "no rule makes table alignment yet" in texts
    boxes = [text.get_window_extent() for text in board.texts]
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes)
    clashes = [
        (texts[i], texts[j])
        for i in range(len(boxes))
        for j in range(i)
        if boxes[i].shrunk(0.98, 0.7).overlaps(boxes[j].shrunk(0.98, 0.7))
    ]
    assert clashes == []
    drawn = [line for line in panel.lines if line.get_marker() in (">", "<")]
    assert sorted(float(np.asarray(line.get_xdata())[0]) for line in drawn) == [-EDGE, EDGE]
    title = figure.get_suptitle()
    assert title == "6 claims on 6 nets and sample sizes: 3 supported, 1 contradicted, 1 inconclusive, 1 not evaluated"
    for name in ("a", "b"):
        save(
            draw(plotted(rows[:: 1 if name == "a" else -1])),
            tmp_path / f"{name}.svg",
            tmp_path / f"{name}.png",
            CAPTION,
        )
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_a_ledger_without_any_verdict_is_drawn() -> None:
    """A config with a grid too small for every claim."""
    assert draw(plotted([unjudged()])).get_suptitle().endswith(": 1 not evaluated")


# Limits of shares


def test_limits_of_a_share_end_at_0_and_1_and_its_mean_does_not_move() -> None:
    whole, cut = mean_interval([0.0, 1.0, 0.0]), share_interval([0.0, 1.0, 0.0])
    assert whole.low is not None
    assert whole.low < 0
    assert (cut.estimate, cut.low, cut.high, cut.n) == (whole.estimate, 0.0, min(whole.high or 0, 1.0), 3)
    assert share_interval([0.4, 0.5, 0.45]) == mean_interval([0.4, 0.5, 0.45])
    assert share_interval([0.5]).low is None


# Width and observability


def seen(dimension: float, flips: float, *, resolved: float = 1.0, sd: float = 0.01) -> Observations:
    """Four seeds, two depths, widths 8 to 64; slopes of d_align and flips per doubling of width."""
    generator, widths = np.random.default_rng(7), (8, 16, 32, 64)
    shape, doublings = (4, 2, 4, 1), np.arange(4.0)[:, None]
    columns = {
        "d_align": dimension * doublings + generator.normal(0, sd, shape),
        "d_align_resolved": np.full(shape, resolved),
        "flips": 0.5 + flips * doublings + generator.normal(0, sd, shape),
    }
    return Observations((2, 4), widths, (4000,), (0, 1, 2, 3), columns, ())


@pytest.mark.parametrize(
    ("table", "verdict"),
    [
        (seen(0.1, -0.1), "supported"),
        (seen(-0.1, -0.1), "contradicted"),
        (seen(0.1, 0.1), "contradicted"),
        (seen(0.1, 0.0, sd=0.1), "inconclusive"),
        (seen(0.1, -0.1, resolved=0.5), "inconclusive"),
    ],
)
def test_width_raises_observability_where_the_dimension_rises_and_flips_fall(table: Observations, verdict: str) -> None:
    ruling = width_raises_observability.judge(table)
    assert ruling.verdict == verdict
    assert bool(ruling.reason) == (verdict != "supported")
    null = width_raises_observability.null(table, "width_raises_observability", "supported")
    assert null.share <= null.tolerated


def test_the_slope_is_that_per_doubling_of_width_averaged_over_depths() -> None:
    assert width_raises_observability.judge(seen(0.25, -0.1, sd=0)).main.estimate == pytest.approx(0.25)


def test_width_labels_change_places_within_a_seed_and_depth_and_columns_stay_together() -> None:
    table = seen(1.0, -1.0, sd=0)
    moved = permute_widths(table, np.random.default_rng(1))
    for name in ("d_align", "flips"):
        assert np.array_equal(np.sort(moved.columns[name], axis=2), np.sort(table.columns[name], axis=2))
        assert not np.array_equal(moved.columns[name], table.columns[name])
    assert np.allclose(moved.columns["flips"], 0.5 - moved.columns["d_align"])


def test_a_claim_that_names_an_unknown_figure_is_refused() -> None:
    """Its caption would name a picture that is nowhere."""
    known = load_files([checkout() / "config" / "config.yaml"])
    claims = {name: dict(entry) for name, entry in known.claims.items()}
    claims["rebound"]["figures"] = ["joint_scaling", "pie"]
    with pytest.raises(InputError, match=r"claims\.yaml: rebound\.figures has 'pie'; accepted: .*joint_scaling"):
        resolve(known.config, known.datasets, claims)
