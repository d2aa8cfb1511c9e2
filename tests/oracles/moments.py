"""Slow and obvious: discrete laws whose moments are sums over atoms, expectations as sums over all samples, and
U-statistics as loops over distinct rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np

FIELDS = ("S", "S_squared", "V", "T", "R", "R2", "diag")


@dataclass(frozen=True)
class Law:
    """Atoms [k, N] and their probabilities [k]."""

    atoms: np.ndarray
    probabilities: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return self.probabilities @ self.atoms

    @property
    def covariance(self) -> np.ndarray:
        centred = self.atoms - self.mean
        return (centred.T * self.probabilities) @ centred

    def moments(self) -> dict[str, float]:
        """The true moments, by their definitions."""
        mu, sigma = self.mean, self.covariance
        S, R = mu @ mu, np.trace(sigma)
        diag = (np.diagonal(sigma) ** 2).sum()
        return {
            "S": S,
            "S_squared": S**2,
            "V": mu @ sigma @ mu,
            "T": np.trace(sigma @ sigma),
            "R": R,
            "R2": R**2,
            "diag": diag,
        }

    def cross_moments(self, test: "Law") -> dict[str, float]:
        """The true moments of train rows of this law and test rows of another."""
        mu, sigma, nu, gamma = self.mean, self.covariance, test.mean, test.covariance
        return {
            "S": mu @ nu,
            "S_squared": (mu @ nu) ** 2,
            "V_train": nu @ sigma @ nu,
            "V_test": mu @ gamma @ mu,
            "T": np.trace(sigma @ gamma),
            "R": np.trace(sigma),
            "R2": np.trace(sigma) * np.trace(gamma),
            "diag": np.diagonal(sigma) @ np.diagonal(gamma),
        }

    def samples(self, n: int) -> list[tuple[float, np.ndarray]]:
        """Every sample [n, N] with its probability."""
        draws = product(range(len(self.atoms)), repeat=n)
        return [(float(np.prod(self.probabilities[list(draw)])), self.atoms[list(draw)]) for draw in draws]


def expected(statistic: Callable[[np.ndarray], Mapping[str, float]], law: Law, n: int) -> dict[str, float]:
    """The exact expectation of a statistic of n rows."""
    total: dict[str, float] = {}
    for probability, rows in law.samples(n):
        for name, value in statistic(rows).items():
            total[name] = total.get(name, 0.0) + probability * float(value)
    return total


def expected_of_two(
    statistic: Callable[[np.ndarray, np.ndarray], Mapping[str, float]], train: Law, n: int, test: Law, m: int
) -> dict[str, float]:
    """The exact expectation of a statistic of n train and m test rows."""
    total: dict[str, float] = {}
    tests = test.samples(m)
    for probability, rows in train.samples(n):
        for other, others in tests:
            for name, value in statistic(rows, others).items():
                total[name] = total.get(name, 0.0) + probability * other * float(value)
    return total


def _t_squared(g: Any, i: int, j: int, k: int, m: int) -> Any:
    return g[i][j] ** 2 - 2 * g[i][j] * g[i][k] + g[i][j] * g[k][m]


def exact_moments(rows: np.ndarray) -> dict[str, float]:
    """The U-statistics of S, S^2, V, T, R, R^2 and diag in exact rational arithmetic, looping over distinct rows."""
    X = [[Fraction(float(value)) for value in row] for row in rows]
    n, N = len(X), len(X[0])
    g = [[sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0)) for y in X] for x in X]
    by_coordinate = [[[x[c] * y[c] for y in X] for x in X] for c in range(N)]
    totals, count = dict.fromkeys(FIELDS, Fraction(0)), 0
    for i, j, k, m in permutations(range(n), 4):
        count += 1
        totals["S"] += g[i][j]
        totals["S_squared"] += g[i][j] * g[k][m]
        totals["V"] += g[i][j] * g[i][k] - g[i][j] * g[k][m]
        totals["T"] += _t_squared(g, i, j, k, m)
        totals["R"] += g[i][i] - g[i][j]
        totals["R2"] += g[i][i] * g[j][j] - 2 * g[i][i] * g[j][k] + g[i][j] * g[k][m]
        totals["diag"] += sum((_t_squared(one, i, j, k, m) for one in by_coordinate), Fraction(0))
    return {name: float(total / count) for name, total in totals.items()}
