"""The moments of gradient rows that everything else is made of, unbiased for any law, from n >= 4 rows.

    S = |mu|^2    V = mu' Sigma mu    T = tr(Sigma^2)    R = tr(Sigma)    R2 = R^2    diag = |diag Sigma|^2

Derived; each estimator is checked by exact enumeration of small discrete laws. The stable form
with `Y = X - mean`, `C = Y'Y`, `q_i = |y_i|^2`, `t = sum q_i y_i`, D = sum q, Q = sum q^2, F = |C|^2 and, over
coordinates, P2 = sum_j (sum_i y_ij^2)^2, P4 = sum_ij y_ij^4, (n)_k the falling factorial:

    R^ = D/(n-1)    S^ = |mean|^2 - R^/n
    V^ = mean'C mean/(n-1) - 2 mean't/((n-1)(n-2)) + (2nQ - (n-1)F - D^2)/(n)_4
    T^ = ((n-1)(n-2) F - n(n-1) Q + D^2)/(n)_4    (R^2)^ = ((n^2-3n+1) D^2 - n(n-1) Q + 2F)/(n)_4
    diag^ = ((n^2-3n+3) P2 - n(n-1) P4)/(n)_4     (S^2)^ = S^^2 - 4V^/n - 2T^/(n(n-1))

T^ and (R^2)^ are the raw forms with centred rows put in; (S^2)^ is u4, as both are symmetric and unbiased and only one
statistic is. The plug-in forms are the moments of the empirical law (divisor n).
"""

from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[Any]
"""An n x N array of integers or floats; all sums are taken in float64."""
FloatArray: TypeAlias = NDArray[np.float64]
Value: TypeAlias = float | FloatArray
"""A number, or one number per jackknife block."""


@dataclass(frozen=True)
class CentredSums:
    """The sums of the stable form: all that the moments need of the rows."""

    n: Value
    N: int
    mean_square: Value  # |mean|^2
    along_mean: Value  # mean'C mean
    mean_t: Value  # mean't
    D: Value
    Q: Value
    F: Value
    P2: Value
    P4: Value


@dataclass(frozen=True)
class Moments:
    """Moments of n rows of N units; in units of the rows to the power 2 (S, R) or 4 (all others). NaN where n < 4."""

    n: Value
    N: int
    S: Value
    S_squared: Value
    V: Value
    T: Value
    R: Value
    R2: Value
    diag: Value

    @property
    def rho_off(self) -> Value:
        """Share of T that is off the diagonal, (T - diag)/T; 0 where T is exactly 0 (constant rows)."""
        return share_off_diagonal(self.T, self.diag)

    @property
    def s_variance(self) -> Value:
        """Var S^ = 4V/n + 2T/(n(n-1)), exact for any law, with V^ and T^ put in where they are positive."""
        return 4 * np.maximum(self.V, 0) / self.n + self.s_variance_at_zero

    @property
    def s_variance_at_zero(self) -> Value:
        """Var S^ where mu = 0."""
        return 2 * np.maximum(self.T, 0) / (self.n * (self.n - 1))

    def at(self, index: int) -> "Moments":
        """Those of one of several row sets side by side, the last axis of every value."""
        values = {name: getattr(self, name) for name in VALUES}
        return replace(self, **{name: value[..., index] for name, value in values.items() if np.ndim(value)})

    def z_variance(self, n: int, m: int) -> Value:
        """Var <mean_train, mean_test> = V (1/n + 1/m) + T/(nm) of independent means over n and m rows of this law."""
        return self.V * (1 / n + 1 / m) + self.T / (n * m)


VALUES = tuple(field.name for field in fields(Moments) if field.name != "N")


def share_off_diagonal(T: Value, diag: Value) -> Value:
    """(T - diag)/T, and 0 where T is exactly 0."""
    energy = np.asarray(T, dtype=np.float64)
    return np.divide(energy - diag, energy, out=np.zeros_like(energy), where=energy != 0)[()]


def falling(n: Value, k: int) -> Value:
    """(n)_k = n (n-1) ... (n-k+1), NaN where n < k: too few rows for a statistic of k distinct ones."""
    rows = np.asarray(n, dtype=np.float64)
    return np.where(rows >= k, np.prod([rows - i for i in range(k)], axis=0), np.nan)[()]


def unbiased(sums: CentredSums) -> Moments:
    """The stable unbiased forms above, element by element where the sums are arrays."""
    n, N, D, Q, F = sums.n, sums.N, sums.D, sums.Q, sums.F
    of_two, of_three, of_four = (falling(n, k) for k in (2, 3, 4))
    R = n * D / of_two
    S = sums.mean_square - R / n
    V = n * sums.along_mean / of_two - 2 * n * sums.mean_t / of_three
    V = V + (2 * n * Q - (n - 1) * F - D**2) / of_four
    T = ((n - 1) * (n - 2) * F - n * (n - 1) * Q + D**2) / of_four
    R2 = ((n**2 - 3 * n + 1) * D**2 - n * (n - 1) * Q + 2 * F) / of_four
    diag = ((n**2 - 3 * n + 3) * sums.P2 - n * (n - 1) * sums.P4) / of_four
    return Moments(n, N, S, S**2 - 4 * V / n - 2 * T / of_two, V, T, R, R2, diag)


def plug_in(sums: CentredSums) -> Moments:
    """The moments of the empirical law of the rows, biased: for comparison only."""
    n, S, R = sums.n, sums.mean_square, sums.D / sums.n
    return Moments(n, sums.N, S, S**2, sums.along_mean / n, sums.F / n**2, R, R**2, sums.P2 / n**2)


def centre(rows: Rows) -> tuple[FloatArray, FloatArray]:
    """Mean [..., N] and centred rows of rows [..., n, N]. The first row is subtracted first: a constant coordinate
    comes out as exactly 0."""
    first = rows[..., :1, :].astype(np.float64)
    shifted = rows - first
    mean = shifted.mean(axis=-2, keepdims=True)
    return (first + mean)[..., 0, :], shifted - mean


def energy(rows: FloatArray) -> float:
    """|Y'Y|^2 = |YY'|^2 (Frobenius), from the smaller of the two."""
    gram = rows @ rows.T if len(rows) <= rows.shape[1] else rows.T @ rows
    return float(np.vdot(gram, gram))


def centred_sums(rows: Rows) -> CentredSums:
    """The sums of rows [n, N] held in memory."""
    mean, Y = centre(rows)
    q, projections, squares = (Y**2).sum(axis=1), Y @ mean, (Y**2).sum(axis=0)
    return CentredSums(
        n=len(rows),
        N=rows.shape[1],
        mean_square=float(mean @ mean),
        along_mean=float(projections @ projections),
        mean_t=float(q @ projections),
        D=float(q.sum()),
        Q=float(q @ q),
        F=energy(Y),
        P2=float(squares @ squares),
        P4=float((Y**4).sum()),
    )


def moments(rows: Rows) -> Moments:
    """Unbiased moments of rows [n, N] held in memory."""
    return unbiased(centred_sums(rows))


def raw_moments(rows: Rows) -> Moments:
    """The same moments from the raw Gram matrix `G = XX'`, as a sum over distinct rows.

    Equal to `moments` in exact arithmetic; cancels where the mean is large against the noise.
    """
    X = rows.astype(np.float64)
    G = X @ X.T
    n, g = len(X), np.diagonal(G)
    r = G.sum(axis=1) - g
    A1, A2, B, D1, D2, E = r.sum(), (G**2).sum() - g @ g, r @ r, g.sum(), g @ g, g @ r
    of_two, of_three, of_four = (falling(n, k) for k in (2, 3, 4))
    u2, u3, u4 = A2 / of_two, (B - A2) / of_three, (A1**2 - 4 * B + 2 * A2) / of_four
    S = A1 / of_two
    R2 = (D1**2 - D2) / of_two - 2 * (D1 * A1 - 2 * E) / of_three + u4
    p1, p2, p3, p4 = ((X**k).sum(axis=0) for k in (1, 2, 3, 4))
    pairs, chains = p2**2 - p4, p1**2 * p2 - 2 * p1 * p3 + p4
    diag = pairs / of_two - 2 * (chains - pairs) / of_three
    diag = diag + ((p1**2 - p2) ** 2 - 4 * chains + 2 * pairs) / of_four
    return Moments(n, X.shape[1], S, u4, u3 - u4, u2 - 2 * u3 + u4, D1 / n - S, R2, float(diag.sum()))
