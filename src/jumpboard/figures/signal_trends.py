"""First-order signals of a net's cells at one relative site and at their largest, with their slopes on log2 depth.

Relative site: of the places inside a net, those that the most depths have, of these the one nearest the middle, the
earlier one if two are as near. Matched loss: the level that the most runs have reached, the lowest if several.

Slopes are those of log2 of the square where every run of a statistic, checkpoint and split is resolved (its own lower
limit lies above 0). Else they are those of the square over its root mean square, one number for all runs.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from jumpboard.claims.run_values import expected_maximum
from jumpboard.claims.statistics import mean_interval, slopes
from jumpboard.figures.cells import mean_columns
from jumpboard.figures.measured import runs_of

Row = Mapping[str, Any]

STATISTICS = ("raw", "scale_free", "largest")
SPLITS = ("test", "train")


class Square(NamedTuple):
    """A squared signal of one run, and whether its own lower limit lies above 0."""

    value: float
    resolved: bool


Runs = dict[int, Square | None]  # seed -> square; None where the run was not measured
Cells = dict[tuple[int, int], Runs]  # (depth, width) -> runs
Slopes = dict[int, float]  # seed -> slope


def relative_site(rows: Sequence[Row]) -> Fraction:
    """Site over depth; 0 where no net has a site inside."""
    places = Counter(Fraction(site, depth) for depth, site in {(row["depth"], row["site"]) for row in rows})
    inside = {place: depths for place, depths in places.items() if 0 < place < 1}
    most = [place for place, depths in inside.items() if depths == max(inside.values())]
    return min(most, key=lambda place: (abs(place - Fraction(1, 2)), place), default=Fraction(0))


def matched_loss(rows: Sequence[Row]) -> str | None:
    """The checkpoint `loss_<x>`; None where no run was measured at any."""
    runs = {(row["checkpoint"], row["depth"], row["width"], row["seed"]) for row in rows}
    reached = Counter(checkpoint for checkpoint, *_ in runs if checkpoint.startswith("loss_"))
    return min(reached, key=lambda level: (-reached[level], float(level.removeprefix("loss_"))), default=None)


def trends(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One row per statistic, checkpoint, split, depth and width."""
    site, splits = relative_site(rows), {row["split"] for row in rows}
    table = []
    for statistic in STATISTICS:
        for checkpoint in filter(None, (matched_loss(rows), "final")):
            for split in filter(splits.__contains__, SPLITS):
                cells = _cells(rows, checkpoint, split, statistic, site)
                relative = None if statistic == "largest" else float(site)
                place = {"checkpoint": checkpoint, "split": split, "statistic": statistic, "relative_site": relative}
                table += [place | row for row in _rows(cells)]
    return table


def _cells(rows: Sequence[Row], checkpoint: str, split: str, statistic: str, site: Fraction) -> Cells:
    """Depths that have no such site are left out. The largest is over as many sites as the shallowest net has."""
    fewest = min((row["depth"] for row in rows), default=0) + 1
    return {
        (depth, width): {seed: _square(sites, statistic, site, fewest) for seed, sites in seeds.items()}
        for (depth, width), seeds in sorted(runs_of(rows, checkpoint, split).items())
        if statistic == "largest" or (site * depth).denominator == 1
    }


def _square(sites: Sequence[Row], statistic: str, site: Fraction, fewest: int) -> Square | None:
    name = "feature_scale_free_sq" if statistic == "scale_free" else "signal_feature_sq"
    if statistic != "largest":
        sites = [row for row in sites if row["site"] == site * row["depth"]]
    squares = [Square(row[name], (row["signal_feature_sq_low"] or 0) > 0) for row in sites if row[name] is not None]
    largest = max(squares, key=lambda square: square.value, default=None)
    if largest is None or statistic != "largest":
        return largest
    return Square(expected_maximum([square.value for square in squares], fewest), largest.resolved)


def _rows(cells: Cells) -> list[dict[str, Any]]:
    """Means and slopes of one panel; scale and mean slope are those of the widths that every run has come to, the only
    ones at which the claims compare depths."""
    short = {width for (_, width), seeds in cells.items() if None in seeds.values()}
    whole = {width for _, width in cells} - short
    scaled_by = {key: seeds for key, seeds in cells.items() if key[1] in whole} or cells
    scale, scaled = _scale([run for seeds in scaled_by.values() for run in seeds.values() if run])
    lines: dict[int, dict[int, dict[int, float]]] = defaultdict(dict)
    without_log = {
        width for (_, width), seeds in cells.items() if any(run and run.value <= 0 for run in seeds.values())
    }
    for (depth, width), seeds in cells.items():
        has_slope = scale == "linear" or width not in without_log
        lines[width][depth] = {seed: scaled(run.value) for seed, run in seeds.items() if run and has_slope}
    found = {width: _slopes(line) for width, line in lines.items()}
    compared = [line for width, line in found.items() if line and width in whole]
    overall = _slope_columns("mean_slope", _averaged(compared))
    table = []
    for (depth, width), seeds in cells.items():
        own = [run for run in seeds.values() if run]
        row = {"depth": depth, "width": width, **mean_columns("signal", [run.value for run in own])}
        row |= {"missing": len(seeds) - len(own), "resolved": bool(own) and all(run.resolved for run in own)}
        row |= {"scale": scale, **_slope_columns("slope", found[width]), **overall}
        table.append(row)
    return table


def _scale(runs: Sequence[Square]) -> tuple[str, Callable[[float], float]]:
    """What slopes are taken of."""
    if all(run.resolved and run.value > 0 for run in runs):
        return "log", math.log2
    size = float(np.sqrt(np.mean([run.value**2 for run in runs]))) or 1.0
    return "linear", lambda value: value / size


def _slopes(line: Mapping[int, Mapping[int, float]]) -> Slopes:
    """Over depths that at least half of the seeds have, of the seeds that have all of these."""
    most = max(map(len, line.values()))
    depths = [depth for depth in sorted(line) if most and 2 * len(line[depth]) >= most]
    if len(depths) < 2:
        return {}
    seeds = sorted(set.intersection(*(set(line[depth]) for depth in depths)))
    values = np.array([[line[depth][seed] for depth in depths] for seed in seeds]).reshape(len(seeds), len(depths))
    return dict(zip(seeds, slopes(np.log2(depths), values).tolist(), strict=True))


def _averaged(lines: Sequence[Slopes]) -> Slopes:
    """The mean over widths, of the seeds that have a slope at each."""
    seeds = set.intersection(*map(set, lines)) if lines else set()
    return {seed: float(np.mean([line[seed] for line in lines])) for seed in sorted(seeds)}


def _slope_columns(name: str, seeds: Slopes) -> dict[str, Any]:
    interval = mean_interval(list(seeds.values())) if seeds else None
    return {
        name: interval and interval.estimate,
        f"{name}_low": interval and interval.low,
        f"{name}_high": interval and interval.high,
        f"{name}_n": len(seeds),
    }
