"""Moments of rows that arrive in batches: a state of N^2 + 5N numbers, whatever the number of rows.

    sum g    sum g g' (N x N)    sum |g|^2 g    sum |g|^4    per coordinate sum g^3, sum g^4        g = row - pilot

(derived). The pilot is the mean of the first batch, so that a mean of 10^4 times the noise loses
no digits. States can be added (batches measured apart) and subtracted (a jackknife block taken out); both first move
the second state to the pilot of the first, exactly. The result is that of `moments` on all rows at once.
"""

from dataclasses import dataclass, replace

import numpy as np

from jumpboard.measure.moments import CentredSums, FloatArray, Rows, centre
from jumpboard.measure.pilot import PilotSums, coordinate_sums


@dataclass
class MomentState:
    """Power sums of rows about a pilot; `update` adds rows in place, everything else returns a new state."""

    pilot: FloatArray
    n: int
    first: FloatArray
    outer: FloatArray
    third: FloatArray
    fourth: float
    cubes: FloatArray
    fourths: FloatArray

    @classmethod
    def about(cls, pilot: FloatArray) -> "MomentState":
        """The empty state about a pilot [N]."""
        N = len(pilot)
        first, third, cubes, fourths = (np.zeros(N) for _ in range(4))
        return cls(pilot, 0, first, np.zeros((N, N)), third, 0.0, cubes, fourths)

    @classmethod
    def start(cls, batch: Rows) -> "MomentState":
        """The state of a first batch [b, N], about its own mean."""
        pilot, _ = centre(batch)
        state = cls.about(pilot)
        state.update(batch)
        return state

    def update(self, batch: Rows) -> None:
        """Add the rows of a batch [b, N]."""
        g = batch - self.pilot
        squares = g**2
        q = squares @ np.ones(len(self.pilot))  # products and `einsum`: two to three times as fast as sums over an axis
        self.n += len(g)
        self.first += np.ones(len(g)) @ g
        self.outer += g.T @ g
        self.third += q @ g
        self.fourth += float(q @ q)
        self.cubes += np.einsum("ij,ij->j", squares, g)
        self.fourths += np.einsum("ij,ij->j", squares, squares)

    def moved(self, pilot: FloatArray) -> "MomentState":
        """The same rows about another pilot."""
        if pilot is self.pilot:
            return self
        e, n, s, t = pilot - self.pilot, self.n, self.first, self.third
        ce, ee, es, squares, D = self.outer @ e, float(e @ e), float(e @ s), self.outer.diagonal(), self.outer.trace()
        cross = np.outer(s, e)
        return MomentState(
            pilot=pilot,
            n=n,
            first=s - n * e,
            outer=self.outer - cross - cross.T + n * np.outer(e, e),
            third=t - D * e - 2 * ce + 2 * es * e + ee * s - n * ee * e,
            fourth=self.fourth - 4 * float(e @ t) + 4 * float(e @ ce) + 2 * ee * D - 4 * ee * es + n * ee**2,
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
        """The sums of the stable form, for `unbiased` and `plug_in`."""
        p, d, squares = self.pilot, self.first / self.n, self.outer.diagonal()
        cp, cd = self.outer @ p, self.outer @ d
        about = PilotSums(
            n=self.n,
            pilot=p,
            d=d,
            t=self.third,
            D=float(squares.sum()),
            Q=self.fourth,
            pcp=float(p @ cp),
            pcd=float(p @ cd),
            dcd=float(d @ cd),
            F=float(np.vdot(self.outer, self.outer)),
        )
        return about.centred(len(p), *coordinate_sums(self.n, self.first, squares, self.cubes, self.fourths))
