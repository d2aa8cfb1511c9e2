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


def _squares(rows: CentredRows) -> tuple[FloatArray, FloatArray]:
    """Sum of squares about the mean per coordinate: of all rows [N], and without each block [blocks, N]."""
    squares, first = np.zeros((2, len(rows.sizes), rows.N))
    for k, block in enumerate(rows.blocks()):
        squares[k], first[k] = (block**2).sum(axis=0), block.sum(axis=0)
    total = squares.sum(axis=0)
    return total, total - squares - first**2 / (rows.n - rows.sizes)[:, None]


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
    (C_jj, C_left), (K_jj, K_left) = _squares(train), _squares(test)
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
        replace(without_train, trace_c=C_left.sum(axis=1), P=C_left @ K_jj),
        replace(without_test, trace_k=K_left.sum(axis=1), P=K_left @ C_jj),
    )
