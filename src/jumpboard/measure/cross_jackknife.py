"""Sums of two row sets, and the same without one block of either, in memory that does not grow with their rows.

Without a block B of n_B train rows Y_B about their mean x, n' = n - n_B rows are left with the mean x + d,
d = -sum Y_B/n'. With the scatter matrices C of the train and K of the test rows, whose mean is y (derived; exact):

    x'y + d'y    y'Cy - |Y_B y|^2 - n' (d'y)^2    x'Kx + 2 d'Kx + d'Kd
    <C, K> - sum_{i in B} y_i'K y_i - n' d'Kd    C_jj - sum_{i in B} y_ij^2 - n' d_j^2

and with the roles exchanged for blocks of test rows. C and K are held once: 16 N^2 bytes and half as much again.
"""

from dataclasses import replace

import numpy as np

from jumpboard.measure.cross import CrossSums
from jumpboard.measure.moments import FloatArray
from jumpboard.measure.pilot import dots
from jumpboard.measure.rows import CentredRows, in_common_span


def _squares(rows: CentredRows) -> FloatArray:
    """Sum of squares about the mean per coordinate, [N]."""
    return sum(((block**2).sum(axis=0) for block in rows.blocks()), np.zeros(rows.N))


def _coordinates(rows: CentredRows, squares: FloatArray, others: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Without each block: the sum of `squares`, and their inner product with those of the other row set."""
    left = []
    for n, block in zip(rows.n - rows.sizes, rows.blocks(), strict=True):
        remaining = squares - (block**2).sum(axis=0) - block.sum(axis=0) ** 2 / n
        left.append((remaining.sum(), remaining @ others))
    traces, products = np.array(left).T
    return traces, products


def _without_blocks(sums: CrossSums, train: CentredRows, y: FloatArray, K: FloatArray) -> CrossSums:
    left = train.n - train.sizes
    first = np.zeros((len(left), train.N))
    along, overlap = np.zeros((2, len(left)))
    for k, block in enumerate(train.blocks()):
        first[k], y_along = block.sum(axis=0), block @ y
        along[k], overlap[k] = y_along @ y_along, np.vdot(block @ K, block)
    d = -first / left[:, None]
    kd = d @ K
    dkd, dy = dots(d, kd), d @ y
    return replace(
        sums,
        n=left,
        S=sums.S + dy,
        ycy=sums.ycy - along - left * dy**2,
        xkx=sums.xkx + 2 * kd @ train.mean + dkd,
        f=sums.f - overlap - left * dkd,
    )


def delete_block_cross_sums(train: CentredRows, test: CentredRows) -> tuple[CrossSums, CrossSums, CrossSums]:
    """The sums of all rows, those without train block k, and those without test block k, as arrays over k."""
    C_jj, K_jj = _squares(train), _squares(test)
    (trace_c, P_train), (trace_k, P_test) = _coordinates(train, C_jj, K_jj), _coordinates(test, K_jj, C_jj)
    x_rows, y_rows = in_common_span([train, test])
    x, y, C, K = x_rows.mean, y_rows.mean, x_rows.scatter(), y_rows.scatter()
    every = CrossSums(
        n=train.n,
        m=test.n,
        N=train.N,
        S=float(x @ y),
        ycy=float(y @ C @ y),
        xkx=float(x @ K @ x),
        f=float(np.vdot(C, K)),
        trace_c=float(C_jj.sum()),
        trace_k=float(K_jj.sum()),
        P=float(C_jj @ K_jj),
    )
    without_train = _without_blocks(every, x_rows, y, K)
    without_test = _without_blocks(every.swapped(), y_rows, x, C).swapped()
    return (
        every,
        replace(without_train, trace_c=trace_c, P=P_train),
        replace(without_test, trace_k=trace_k, P=P_test),
    )
