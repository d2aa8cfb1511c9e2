"""Sums of all rows and of all rows but one block, in memory that does not grow with the number of rows.

The N x N matrix `C` about the mean is held once. A block B of rows Y_B leaves `C - Y_B'Y_B`, of which the moments need
only forms, so that no second N x N matrix is made (derived; exact, no linearisation):

    |C - Y_B'Y_B|^2 = |C|^2 - 2 sum_{i in B} y_i'C y_i + |Y_B Y_B'|^2       v'(C - Y_B'Y_B) w = v'Cw - (Y_B v)'(Y_B w)

and the mean of what is left is found from the mean of all (`pilot`). Cost: a few passes over the rows, 2 n N^2
multiply-adds, 16 N^2 bytes for C and one product, and the rows of one block.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np

from jumpboard.measure.moments import CentredSums, FloatArray, Value, energy
from jumpboard.measure.pilot import PilotSums, coordinate_sums, dots, times
from jumpboard.measure.rows import CentredRows, in_common_span
from jumpboard.measure.streaming import MomentState


def _powers(block: FloatArray) -> FloatArray:
    squares = block**2
    return np.array([one.sum(axis=0) for one in (block, squares, squares * block, squares**2)])


def _coordinates(rows: CentredRows) -> tuple[tuple[Value, Value], FloatArray]:
    """P2 and P4 of all rows, and of the rows without each block [2, blocks]."""
    total, left = sum(map(_powers, rows.blocks()), np.zeros((4, rows.N))), rows.n - rows.sizes
    remaining = [coordinate_sums(n, *(total - _powers(block))) for n, block in zip(left, rows.blocks(), strict=True)]
    return coordinate_sums(rows.n, *total), np.array(remaining).T


def delete_block_sums(rows: CentredRows) -> tuple[CentredSums, CentredSums]:
    """The sums of all rows, and the sums without block k as arrays over k."""
    turned = in_common_span([rows])[0]
    n, left, mean, C = turned.n, turned.n - turned.sizes, turned.mean, turned.scatter()
    first, third = np.zeros((2, len(left), turned.N))
    D, Q, along, along_d, across_d, overlap, inner = np.zeros((7, len(left)))
    for k, block in enumerate(turned.blocks()):
        q = dots(block, block)
        first[k], third[k], D[k], Q[k] = block.sum(axis=0), q @ block, q.sum(), q @ q
        overlap[k], inner[k] = np.vdot(block @ C, block), energy(block)
    s, t = first.sum(axis=0), third.sum(axis=0)
    d, d_left = s / n, (s - first) / left[:, None]
    for k, block in enumerate(turned.blocks()):
        y_mean, y_d = block @ mean, block @ d_left[k]
        along[k], along_d[k], across_d[k] = y_mean @ y_mean, y_mean @ y_d, y_d @ y_d
    cm, cd, cd_left, F = C @ mean, C @ d, d_left @ C, float(np.vdot(C, C))
    every = PilotSums(n, mean, d, t, D.sum(), Q.sum(), mean @ cm, d @ cm, d @ cd, F)
    remaining = PilotSums(
        n=left,
        pilot=mean,
        d=d_left,
        t=t - third,
        D=D.sum() - D,
        Q=Q.sum() - Q,
        pcp=mean @ cm - along,
        pcd=d_left @ cm - along_d,
        dcd=dots(d_left, cd_left) - across_d,
        F=F - 2 * overlap + inner,
    )
    axes, axes_left = _coordinates(rows)
    return every.centred(rows.N, *axes), remaining.centred(rows.N, *axes_left)


def delete_state_sums(blocks: Sequence[MomentState]) -> tuple[CentredSums, CentredSums]:
    """The same from the streamed state of each block, for rows that cannot be read again; N x N numbers per block.

    States of several row sets side by side [...] give sums [...] and [blocks, ...].
    """
    total = reduce(MomentState.merged, blocks)
    parts = [block.moved(total.pilot) for block in blocks]

    def left(name: str) -> FloatArray:
        return np.asarray(getattr(total, name) - np.array([getattr(part, name) for part in parts]), dtype=np.float64)

    first, outer, third, pilot = left("first"), left("outer"), left("third"), total.pilot
    n = np.broadcast_to(left("n").reshape(-1, *[1] * (pilot.ndim - 1)), first.shape[:-1])
    d, squares = first / n[..., None], np.diagonal(outer, axis1=-2, axis2=-1)
    cp, cd = times(outer, pilot), times(outer, d)
    remaining = PilotSums(
        n=n,
        pilot=pilot,
        d=d,
        t=third,
        D=squares.sum(axis=-1),
        Q=left("fourth"),
        pcp=dots(cp, pilot),
        pcd=dots(cp, d),
        dcd=dots(cd, d),
        F=np.einsum("...ij,...ij->...", outer, outer),
    )
    axes = coordinate_sums(n, first, squares, left("cubes"), left("fourths"))
    return total.sums(), remaining.centred(pilot.shape[-1], *axes)
