"""The moments of two laws from independent rows of each: n train rows (mu, Sigma) and m test rows (nu, Gamma).

    S = mu'nu    V_train = nu'Sigma nu    V_test = mu'Gamma mu    V = max(V_train, V_test)    T = tr(Sigma Gamma)
    R = tr Sigma    R2 = tr Sigma tr Gamma    diag = sum_j Sigma_jj Gamma_jj

(paper `width`, two laws; V so that the certificate stays valid.) Unbiased (derived), with means x, y, scatter matrices
C, K about them, f = <C, K>, and P = sum_j C_jj K_jj:

    S^ = x'y    T^ = f/((n-1)(m-1))    V_train^ = y'Cy/(n-1) - T^/m    V_test^ = x'Kx/(m-1) - T^/n
    R^ = tr C/(n-1)    R2^ = tr C tr K/((n-1)(m-1))    diag^ = P/((n-1)(m-1))
    (S^2)^ = S^^2 - V_train^/n - V_test^/m - T^/(nm)    and Var S^ = V_train/n + V_test/m + T/(nm) exactly
"""

from dataclasses import dataclass

import numpy as np

from jumpboard.measure.moments import Rows, Value, centre, share_off_diagonal


@dataclass(frozen=True)
class CrossSums:
    """The sums of both row sets; `ycy` stands for y'Cy, `xkx` for x'Kx, `f` for <C, K>."""

    n: Value
    m: Value
    N: int
    S: Value
    ycy: Value
    xkx: Value
    f: Value
    trace_c: Value
    trace_k: Value
    P: Value

    def swapped(self) -> "CrossSums":
        """The same with train and test exchanged."""
        return CrossSums(self.m, self.n, self.N, self.S, self.xkx, self.ycy, self.f, self.trace_k, self.trace_c, self.P)


@dataclass(frozen=True)
class CrossMoments:
    """Moments of two laws, named as in `Moments`; in units of the rows to the power 2 (S, R) or 4."""

    n: Value
    m: Value
    N: int
    S: Value
    S_squared: Value
    V_train: Value
    V_test: Value
    T: Value
    R: Value
    R2: Value
    diag: Value

    @property
    def V(self) -> Value:  # noqa: N802
        """max(V_train, V_test)."""
        return np.maximum(self.V_train, self.V_test)

    @property
    def rho_off(self) -> Value:
        """(T - diag)/T; 0 where T is exactly 0."""
        return share_off_diagonal(self.T, self.diag)

    @property
    def s_variance(self) -> Value:
        """Var S^, with the three estimates put in where they are positive."""
        with_signal = np.maximum(self.V_train, 0) / self.n + np.maximum(self.V_test, 0) / self.m
        return with_signal + self.s_variance_at_zero

    @property
    def s_variance_at_zero(self) -> Value:
        """Var S^ where mu = nu = 0."""
        return np.maximum(self.T, 0) / (self.n * self.m)

    def z_variance(self, n: int, m: int) -> Value:
        """Var <mean_train, mean_test> over n and m rows: V_train/n + V_test/m + T/(nm)."""
        return self.V_train / n + self.V_test / m + self.T / (n * m)


def unbiased_cross(sums: CrossSums) -> CrossMoments:
    """The unbiased forms above, element by element where the sums are arrays."""
    n, m, S = sums.n, sums.m, sums.S
    pairs = (n - 1) * (m - 1)
    T = sums.f / pairs
    V_train, V_test = sums.ycy / (n - 1) - T / m, sums.xkx / (m - 1) - T / n
    S_squared = S**2 - V_train / n - V_test / m - T / (n * m)
    R, R2 = sums.trace_c / (n - 1), sums.trace_c * sums.trace_k / pairs
    return CrossMoments(n, m, sums.N, S, S_squared, V_train, V_test, T, R, R2, sums.P / pairs)


def plug_in_cross(sums: CrossSums) -> CrossMoments:
    """The moments of the two empirical laws, biased: for comparison only."""
    n, m, S = sums.n, sums.m, sums.S
    R, R2 = sums.trace_c / n, sums.trace_c * sums.trace_k / (n * m)
    V_train, V_test, T, diag = sums.ycy / n, sums.xkx / m, sums.f / (n * m), sums.P / (n * m)
    return CrossMoments(n, m, sums.N, S, S**2, V_train, V_test, T, R, R2, diag)


def cross_sums(train: Rows, test: Rows) -> CrossSums:
    """The sums of rows [n, N] and [m, N] held in memory; <C, K> from the cross-Gram of the centred rows."""
    (x, X), (y, Y) = centre(train), centre(test)
    along_y, along_x, gram = X @ y, Y @ x, X @ Y.T
    C_jj, K_jj = (X**2).sum(axis=0), (Y**2).sum(axis=0)
    return CrossSums(
        n=len(X),
        m=len(Y),
        N=len(x),
        S=float(x @ y),
        ycy=float(along_y @ along_y),
        xkx=float(along_x @ along_x),
        f=float(np.vdot(gram, gram)),
        trace_c=float(C_jj.sum()),
        trace_k=float(K_jj.sum()),
        P=float(C_jj @ K_jj),
    )
