"""Rows n x N as they lie in memory or in a mapped file, read block by block as float64 rows about their mean.

A jackknife takes out one block at a time: single rows where n <= 200, else 200 runs of neighbouring rows, so that
neighbours that depend on each other leave together. All that the moments need but their diagonal is unchanged by a
rotation: where the rows are few against N they are replaced by their coordinates in an orthonormal basis of the space
that they and their means span (a QR decomposition over column blocks), and N x N matrices by small ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from jumpboard.errors import InputError
from jumpboard.measure.moments import FloatArray, Rows

BLOCKS = 200
LEAST = 4
SMALLEST, LARGEST = 1e-35, 1e35
"""Eighth powers of what lies between, as in variances of moments of order four, keep all their digits in float64."""
CHUNK = 1024


@dataclass(frozen=True)
class CentredRows:
    """`rows` less `shift`, with `mean` the mean of the rows as they were; block k is rows edges[k] to edges[k + 1]."""

    rows: Rows
    shift: FloatArray
    mean: FloatArray
    edges: tuple[int, ...]

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def N(self) -> int:  # noqa: N802
        return int(self.rows.shape[1])

    @property
    def sizes(self) -> FloatArray:
        """Rows in each block."""
        return np.diff(self.edges).astype(np.float64)

    def part(self, low: int, high: int) -> FloatArray:
        """Rows low to high about the mean, float64."""
        part: FloatArray = np.subtract(self.rows[low:high], self.shift, dtype=np.float64)
        return part

    def blocks(self) -> Iterator[FloatArray]:
        """The blocks about the mean, one after the other."""
        return (self.part(low, high) for low, high in pairwise(self.edges))

    def scatter(self) -> FloatArray:
        """Y'Y, N x N."""
        total = np.zeros((self.N, self.N))
        for low in range(0, self.n, CHUNK):
            part = self.part(low, low + CHUNK)
            total += part.T @ part
        return total


def check_rows(rows: Rows, name: str) -> None:
    """Raise InputError, naming the rows, unless they are a numeric n x N array with n >= 4 and N >= 1."""
    if rows.dtype.kind not in "iuf":
        raise InputError(f"{name}: holds {rows.dtype}; accepted are integers and real floating-point numbers")
    if rows.ndim != 2:
        raise InputError(f"{name}: has shape {list(rows.shape)}; accepted are arrays of two dimensions, n x N")
    if rows.shape[0] < LEAST:
        raise InputError(f"{name}: has {rows.shape[0]} rows; unbiased moments need at least {LEAST}")
    if rows.shape[1] == 0:
        raise InputError(f"{name}: has shape {list(rows.shape)}; at least one column is needed")


def read_rows(rows: Rows, name: str = "rows") -> CentredRows:
    """Find the mean of the rows in one pass.

    Raises InputError for what `check_rows` refuses, NaN, infinity, and values or differences
    whose eighth powers overflow or underflow float64; rows that are all equal have none.
    """
    check_rows(rows, name)
    n = len(rows)
    edges = tuple(int(edge) for edge in np.linspace(0, n, min(n, BLOCKS) + 1).round())
    pilot = rows[0].astype(np.float64)  # a constant coordinate keeps exactly its value
    uncentred = CentredRows(rows, pilot, pilot, edges)
    total, largest, spread = np.zeros(rows.shape[1]), 0.0, 0.0
    for low, high in pairwise(edges):
        sizes = np.abs(rows[low:high], dtype=np.float64)
        usable = (sizes <= LARGEST).all(axis=1)
        if not usable.all():
            row = low + int(usable.argmin())
            raise InputError(
                f"{name}: row {row} (counted from 0) holds NaN, infinity or more than {LARGEST:g}; "
                "accepted are finite numbers; divide large ones by a constant"
            )
        part = uncentred.part(low, high)
        total += part.sum(axis=0)
        largest, spread = max(largest, sizes.max()), max(spread, np.abs(part).max())
    if 0 < largest < SMALLEST or 0 < spread < SMALLEST:
        raise InputError(
            f"{name}: all values, or all their differences, are below {SMALLEST:g}, so that their moments underflow; "
            "accepted are larger ones; multiply the rows by a constant"
        )
    mean = pilot + total / n
    return CentredRows(rows, mean, mean, edges)


def in_common_span(sets: Sequence[CentredRows]) -> list[CentredRows]:
    """The same rows in an orthonormal basis of their common span where that at least halves N, else as they are."""
    dimension, N = sum(rows.n + 1 for rows in sets), sets[0].N
    if 2 * dimension > N:
        return list(sets)
    triangle: FloatArray = np.zeros((0, dimension))
    step = max(dimension, CHUNK)
    for low in range(0, N, step):
        cut = slice(low, low + step)
        vectors = [one for rows in sets for one in (rows.rows[:, cut] - rows.shift[cut], rows.mean[None, cut])]
        part = np.concatenate(vectors, dtype=np.float64)
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle, part.T]), mode="r"))
    coordinates, low, rotated = triangle.T, 0, []
    for rows in sets:
        high = low + rows.n
        rotated.append(
            CentredRows(coordinates[low:high], np.zeros(coordinates.shape[1]), coordinates[high], rows.edges)
        )
        low = high + 1
    return rotated
