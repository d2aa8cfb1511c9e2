"""Moments of rows that arrive in batches: a state of N^2 + 5N numbers, whatever the number of rows.

    sum g    sum g g' (N x N)    sum |g|^2 g    sum |g|^4    per coordinate sum g^3, sum g^4        g = row - pilot

(derived). The pilot is the mean of the first batch, so that a mean of 10^4 times the noise loses
no digits. States can be added (batches measured apart) and subtracted (a jackknife block taken out); both first move
the second state to the pilot of the first, exactly. The result is that of `moments` on all rows at once.

A state may hold several sets of equally many rows side by side, in leading axes [...] of all its arrays.
"""

from dataclasses import dataclass, replace

import numpy as np

from jumpboard.measure.moments import CentredSums, FloatArray, Rows, centre
from jumpboard.measure.pilot import PilotSums, coordinate_sums, dots, times


@dataclass
class MomentState:
    """Power sums of rows about a pilot [..., N]; `update` adds rows in place, everything else returns a new state."""

    pilot: FloatArray
    n: int
    first: FloatArray
    outer: FloatArray
    third: FloatArray
    fourth: FloatArray
    cubes: FloatArray
    fourths: FloatArray

    @classmethod
    def about(cls, pilot: FloatArray) -> "MomentState":
        """The empty state about a pilot [..., N]."""
        first, third, cubes, fourths = (np.zeros_like(pilot) for _ in range(4))
        outer = np.zeros((*pilot.shape, pilot.shape[-1]))
        return cls(pilot, 0, first, outer, third, np.zeros(pilot.shape[:-1]), cubes, fourths)

    @classmethod
    def start(cls, batch: Rows) -> "MomentState":
        """The state of a first batch [..., b, N], about its own mean."""
        pilot, _ = centre(batch)
        state = cls.about(pilot)
        state.update(batch)
        return state

    def update(self, batch: Rows) -> None:
        """Add the rows of a batch [..., b, N]."""
        g = batch.astype(np.float64)  # a mixed subtraction takes twice as long
        g -= self.pilot[..., None, :]
        squares, ones = g**2, np.ones(g.shape[-2])
        q = squares @ np.ones(g.shape[-1])  # products with ones: two to three times as fast as sums over an axis
        self.n += g.shape[-2]
        self.first += ones @ g
        self.outer += g.mT @ g
        self.third += (q[..., None, :] @ g)[..., 0, :]
        self.fourth += dots(q, q)
        g *= squares
        self.cubes += ones @ g
        squares *= squares
        self.fourths += ones @ squares

    def moved(self, pilot: FloatArray) -> "MomentState":
        """The same rows about another pilot."""
        if pilot is self.pilot:
            return self
        e, n, s, t = pilot - self.pilot, self.n, self.first, self.third
        squares = np.diagonal(self.outer, axis1=-2, axis2=-1)
        ce, ee, es, et, D = times(self.outer, e), dots(e, e), dots(e, s), dots(e, t), squares.sum(axis=-1)
        cross = s[..., :, None] * e[..., None, :]
        return MomentState(
            pilot=pilot,
            n=n,
            first=s - n * e,
            outer=self.outer - cross - cross.mT + n * e[..., :, None] * e[..., None, :],
            third=t - 2 * ce + (2 * es - D - n * ee)[..., None] * e + ee[..., None] * s,
            fourth=self.fourth - 4 * et + 4 * dots(e, ce) + 2 * ee * D - 4 * ee * es + n * ee**2,
            cubes=self.cubes - 3 * e * squares + 3 * e**2 * s - n * e**3,
            fourths=self.fourths - 4 * e * self.cubes + 6 * e**2 * squares - 4 * e**3 * s + n * e**4,
        )

    def _combined(self, other: "MomentState", sign: int) -> "MomentState":
        moved = other.moved(self.pilot)
        return replace(
            self,
            n=self.n + sign * moved.n,
            first=self.first + sign * moved.first,
            outer=self.outer + sign * moved.outer,
            third=self.third + sign * moved.third,
            fourth=self.fourth + sign * moved.fourth,
            cubes=self.cubes + sign * moved.cubes,
            fourths=self.fourths + sign * moved.fourths,
        )

    def merged(self, other: "MomentState") -> "MomentState":
        """The state of both sets of rows."""
        return self._combined(other, 1)

    def without(self, part: "MomentState") -> "MomentState":
        """The state of the rows that are not in `part`, a state of some of these rows."""
        return self._combined(part, -1)

    def sums(self) -> CentredSums:
        """The sums of the stable form [...], for `unbiased` and `plug_in`."""
        p, d, squares = self.pilot, self.first / self.n, np.diagonal(self.outer, axis1=-2, axis2=-1)
        cp, cd = times(self.outer, p), times(self.outer, d)
        about = PilotSums(
            n=self.n,
            pilot=p,
            d=d,
            t=self.third,
            D=squares.sum(axis=-1),
            Q=self.fourth,
            pcp=dots(p, cp),
            pcd=dots(p, cd),
            dcd=dots(d, cd),
            F=np.einsum("...ij,...ij->...", self.outer, self.outer),
        )
        return about.centred(p.shape[-1], *coordinate_sums(self.n, self.first, squares, self.cubes, self.fourths))
