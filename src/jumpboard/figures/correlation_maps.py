"""Figure `correlation_maps`: correlations of activation gradients between coordinates, beside their permuted null.

    share = sum_{i != j} r_ij^2 / (N + sum_{i != j} r_ij^2)       off-diagonal share of squared correlations, plug-in

Coordinates have no order of their own: those that correlate are put next to each other (average linkage of 1 - r), and
so are those of the null, which shows what this procedure finds in noise. Paper `depth`, near-diagonal covariance.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.figures.measured import nothing_measured, rows_of_net
from jumpboard.figures.panels import headline
from jumpboard.figures.style import COLUMN, PAGE, new_figure, styled
from jumpboard.schemas.keys import CELL, SEED, SITE

Row = Mapping[str, Any]
FloatArray = NDArray[np.float64]

COLOURS = mpl.colormaps["RdBu_r"].with_extremes(bad="0.75")
SIDES = {"gradients": "correlation", "samples permuted": "null_correlation"}
OBSERVED, NULL = SIDES
RASTER = 300  # dots per inch of the maps inside SVG and PDF

SCHEMA = Schema(
    "correlation_maps",
    1,
    (
        *CELL,
        SEED,
        SITE,
        Column("side", "string", "-", "gradients, or samples permuted: their null", key=True),
        Column("row", "int64", "-", "place of the first coordinate in the map", key=True),
        Column("column", "int64", "-", "place of the second coordinate, column > row", key=True),
        Column("i", "int64", "-", "first coordinate"),
        Column("j", "int64", "-", "second coordinate"),
        Column("correlation", "float64", "1", "their correlation"),
    ),
)
CAPTION = (
    "Correlations between coordinates of held-out activation gradients at the end of training, for the deepest net of "
    "the smallest, a middle and the largest width: first seed, mapped site nearest the middle. Below: the same after "
    "permuting the samples of each coordinate. Coordinates are ordered so that those that correlate are neighbours, by "
    "the same procedure above and below. Share: squared correlations off the diagonal over those of the whole matrix, "
    "not corrected for chance: compare it with that of the null. The scale of colours holds 95 % of every map."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `correlations` -> rows of `SCHEMA`."""
    table = []
    for pairs in _chosen(rows_of_net("correlations", rows, dataset, arch)):
        place = {column.name: pairs[0][column.name] for column in (*CELL, SEED, SITE)}
        for side, column in SIDES.items():
            matrix = _matrix(pairs, "i", "j", column)
            order = ordered(matrix)
            for row, i in enumerate(order):
                for after, j in enumerate(order[row + 1 :], start=row + 1):
                    there = {"side": side, "row": row, "column": after, "i": i, "j": j}
                    table.append(place | there | {"correlation": float(matrix[i, j])})
    return table


def _chosen(rows: Sequence[Row]) -> list[list[Row]]:
    """Pairs of the maps to show: smallest, middle and largest width, each its deepest net."""
    maps: dict[int, dict[tuple[Any, ...], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if (row["checkpoint"], row["split"]) == ("final", "test"):
            rank = (-row["depth"], row["seed"], abs(row["site"] / row["depth"] - 0.5), row["site"])
            maps[row["width"]][rank].append(row)
    widths = sorted(maps)
    shown = sorted({widths[place] for place in (0, len(widths) // 2, -1)}) if widths else []
    return [maps[width][min(maps[width])] for width in shown]


def _matrix(pairs: Sequence[Row], first: str, second: str, column: str) -> FloatArray:
    """Symmetric, 1 on the diagonal."""
    matrix = np.eye(1 + max(row[second] for row in pairs))
    for row in pairs:
        matrix[row[first], row[second]] = matrix[row[second], row[first]] = row[column]
    return matrix


def ordered(matrix: FloatArray) -> list[int]:
    """Coordinates in an order that puts correlated ones next to each other."""
    distances = squareform(1 - matrix, checks=False)
    return [int(leaf) for leaf in leaves_list(linkage(distances, "average", optimal_ordering=True))]


def share_off_diagonal(matrix: FloatArray) -> float:
    """Of the sum of squared correlations."""
    return float(1 - len(matrix) / (matrix**2).sum())


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_measured("Correlations of gradients")
    maps: dict[tuple[int, str], list[Row]] = defaultdict(list)
    for row in rows:
        maps[row["width"], row["side"]].append(row)
    widths = sorted({width for width, _ in maps})
    matrices = {key: _matrix(pairs, "row", "column", "correlation") for key, pairs in maps.items()}
    limit = _limit(matrices)
    with styled():
        page = COLUMN if len(widths) == 1 else PAGE
        figure = new_figure(page, 1.25 + 2 * min((page - 1) / len(widths), 2.4))
        figure.set_dpi(RASTER)
        headline(figure, _headline(matrices, widths), rows[0])
        panels = figure.subplots(2, len(widths), squeeze=False)
        for down, side in zip(panels, SIDES, strict=True):
            down[0].set_ylabel(side)
            for axes, width in zip(down, widths, strict=True):
                _map(axes, matrices[width, side], Normalize(-limit, limit))
                place = f"{_place(maps[width, side][0])}\n" if side == OBSERVED else ""
                axes.set_title(f"{place}off-diagonal share {share_off_diagonal(matrices[width, side]):.2f}", loc="left")
        colours = mpl.cm.ScalarMappable(Normalize(-limit, limit), COLOURS)
        bar = figure.colorbar(colours, ax=panels, fraction=0.05, aspect=30, shrink=0.6, pad=0.02, extend="both")
        bar.set_label("correlation of two coordinates")
        bar.outline.set_visible(False)
    return figure


def _limit(matrices: Mapping[tuple[int, str], FloatArray]) -> float:
    """End of the scale of colours: 95 % of each map's |correlation| lie within it."""
    pairs = [np.abs(matrix[np.triu_indices(len(matrix), k=1)]) for matrix in matrices.values()]
    return float(np.ceil(10 * max(np.quantile(one, 0.95) for one in pairs))) / 10 or 0.1


def _map(axes: Axes, matrix: FloatArray, scale: Normalize) -> None:
    """The diagonal, which is 1 whatever the gradients are, is left grey."""
    shown = np.ma.masked_array(matrix, mask=np.eye(len(matrix), dtype=bool))
    axes.pcolormesh(shown, cmap=COLOURS, norm=scale, rasterized=True)
    axes.set_facecolor("0.75")
    axes.set_aspect("equal")
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)


def _place(row: Row) -> str:
    return f"width {row['width']}, depth {row['depth']}, site {row['site']}"


def _headline(matrices: Mapping[tuple[int, str], FloatArray], widths: Sequence[int]) -> str:
    told = []
    for width in sorted({widths[0], widths[-1]}):
        share, null = (share_off_diagonal(matrices[width, side]) for side in (OBSERVED, NULL))
        told.append(f"{share:.2f} at width {width} (null {null:.2f})")
    return f"Off-diagonal share of squared correlations: {', '.join(told)}"
