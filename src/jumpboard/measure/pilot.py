"""From sums about a pilot to sums about the mean, exactly: what streaming and the jackknife share.

With `g = x - p` for a pilot p near the mean, `s = sum g`, `C = sum g g'`, `t = sum |g|^2 g`, `D = sum |g|^2`,
`Q = sum |g|^4`, and about the mean `p + d`, `d = s/n`, `a = d'(p + d)` (derived; expand `g - d`):

    D - n |d|^2                      Q - 4 d't + 4 d'Cd + 2 |d|^2 D - 3 n |d|^4
    C - n d d'  so  F - 2 n d'Cd + n^2 |d|^4  and  (p+d)'C(p+d) - n a^2  along the mean
    (p+d)'t - D a - 2 (p+d)'Cd + 2 n |d|^2 a
    per coordinate  sum g^2 - n d^2  and  sum g^4 - 4 d sum g^3 + 6 d^2 sum g^2 - 3 n d^4

Nothing cancels while d is of the order of the noise. All entries may be arrays, one element per jackknife block.
"""

from dataclasses import dataclass

import numpy as np

from jumpboard.measure.moments import CentredSums, FloatArray, Value


def dots(v: FloatArray, w: FloatArray) -> FloatArray:
    """Inner products over the last axis of two arrays of vectors [..., N]."""
    products: FloatArray = np.einsum("...j,...j->...", v, w)
    return products


def times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Products of matrices [..., N, N] with vectors [..., N]."""
    products: FloatArray = (matrices @ vectors[..., None])[..., 0]
    return products


@dataclass(frozen=True)
class PilotSums:
    """Sums of n rows about a pilot p [N]; `pcp`, `pcd`, `dcd` stand for p'Cp, p'Cd, d'Cd and F for |C|^2."""

    n: Value
    pilot: FloatArray
    d: FloatArray
    t: FloatArray
    D: Value
    Q: Value
    pcp: Value
    pcd: Value
    dcd: Value
    F: Value

    def centred(self, N: int, P2: Value, P4: Value) -> CentredSums:
        """The sums about the mean; N, P2 and P4 belong to the original axes, all else may be in rotated ones."""
        n, pp, pd, dd = self.n, dots(self.pilot, self.pilot), dots(self.d, self.pilot), dots(self.d, self.d)
        pt, dt, a = dots(self.t, self.pilot), dots(self.t, self.d), pd + dd
        return CentredSums(
            n=n,
            N=N,
            mean_square=pp + 2 * pd + dd,
            along_mean=self.pcp + 2 * self.pcd + self.dcd - n * a**2,
            mean_t=pt + dt - self.D * a - 2 * (self.pcd + self.dcd) + 2 * n * dd * a,
            D=self.D - n * dd,
            Q=self.Q - 4 * dt + 4 * self.dcd + 2 * dd * self.D - 3 * n * dd**2,
            F=self.F - 2 * n * self.dcd + n**2 * dd**2,
            P2=P2,
            P4=P4,
        )


def coordinate_sums(
    n: Value, first: FloatArray, squares: FloatArray, cubes: FloatArray, fourths: FloatArray
) -> tuple[Value, Value]:
    """P2 and P4 about the mean [...] from `sum g^k`, k = 1..4, per coordinate [..., N], of n rows [...]."""
    n = np.asarray(n)[..., None]
    d = first / n
    centred = squares - n * d**2
    fourth = fourths - 4 * d * cubes + 6 * d**2 * squares - 3 * n * d**4
    return (centred**2).sum(axis=-1), fourth.sum(axis=-1)
