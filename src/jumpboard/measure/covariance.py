"""How near to diagonal is the covariance of gradient rows? Each statistic beside its value for independent coordinates.

    rho_off = (T - diag)/T, unbiased and plug-in       mean and max |correlation| over pairs i != j
    lambda_max / mean variance                         participation ratio R^2/T, from unbiased (R^2)^ and T^
    max |Cov_ij|, i != j, beside the mean variance     the draft's criterion: max |Cov_ij| < 1e-5

Paper `depth`, near-diagonal covariance [stated]; estimators derived; the last row is the draft's. Finite samples show
off-diagonal energy, correlations and a large eigenvalue even where there are none, so each stands beside its mean over
permutations of the samples, drawn for each coordinate apart: its own law stays, dependence on the others goes.

A constant coordinate has no correlation: its pairs are left out of both correlation statistics, and `constant` counts
such coordinates. With no pair left they are None; so are ratios to a variance or T that is not positive. Divisor of
covariances n - 1. For rows held in memory: 8 n N bytes, and the smaller of n^2 and N^2.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from jumpboard.measure.moments import FloatArray, Rows, centre, centred_sums, plug_in, unbiased

DRAFT_LIMIT = 1e-5
COLUMNS = 512


@dataclass(frozen=True)
class PairStatistics:
    """What dependence between coordinates changes; covariances in squared units of the rows, the rest pure numbers."""

    rho_off: float
    rho_off_plug_in: float
    mean_correlation: float | None
    max_correlation: float | None
    max_covariance: float | None
    lambda_max_ratio: float | None


@dataclass(frozen=True)
class Covariance:
    """The statistics of n rows of N coordinates, and their mean over permutations."""

    n: int
    N: int
    constant: int
    mean_variance: float
    participation: float | None
    observed: PairStatistics
    null: PairStatistics

    @property
    def diagonal_by_draft(self) -> bool:
        """The draft's absolute criterion; says little without `mean_variance`."""
        return self.observed.max_covariance is None or self.observed.max_covariance < DRAFT_LIMIT


def _correlations(Y: FloatArray) -> tuple[float | None, float | None, float | None]:
    """Mean and max |correlation|, and max |covariance|, over pairs; column block by column block."""
    norms = np.sqrt((Y**2).sum(axis=0))
    varying = norms > 0
    sd, unit = norms[varying] / np.sqrt(len(Y) - 1), Y[:, varying] / norms[varying]
    count, total, largest, largest_covariance = len(sd), 0.0, 0.0, 0.0
    for low in range(0, count, COLUMNS):
        cut = slice(low, low + COLUMNS)
        sizes = np.abs(unit[:, cut].T @ unit)
        np.fill_diagonal(sizes[:, low:], 0.0)
        total += float(sizes.sum())
        largest = max(largest, float(sizes.max()))
        largest_covariance = max(largest_covariance, float((sizes * sd * sd[cut, None]).max()))
    if count < 2:
        return None, None, 0.0 if Y.shape[1] > 1 else None
    return total / (count * (count - 1)), largest, largest_covariance


def _pair_statistics(rows: Rows) -> PairStatistics:
    _, Y = centre(rows)
    sums = centred_sums(rows)
    gram = Y @ Y.T if len(Y) <= Y.shape[1] else Y.T @ Y
    variance = float(np.trace(gram)) / Y.shape[1]
    mean_correlation, max_correlation, max_covariance = _correlations(Y)
    return PairStatistics(
        rho_off=float(unbiased(sums).rho_off),
        rho_off_plug_in=float(plug_in(sums).rho_off),
        mean_correlation=mean_correlation,
        max_correlation=max_correlation,
        max_covariance=max_covariance,
        lambda_max_ratio=float(np.linalg.eigvalsh(gram)[-1]) / variance if variance > 0 else None,
    )


def _mean(statistics: Sequence[PairStatistics]) -> PairStatistics:
    columns = {field.name: [getattr(one, field.name) for one in statistics] for field in fields(PairStatistics)}
    means = {name: None if column[0] is None else float(np.mean(column)) for name, column in columns.items()}
    return PairStatistics(**means)  # type: ignore[arg-type]


def covariance(rows: Rows, generator: np.random.Generator, permutations: int = 5) -> Covariance:
    """The statistics of rows [n, N], n >= 4; the null is the mean over `permutations` >= 1 draws of the generator."""
    moments = unbiased(centred_sums(rows))
    _, Y = centre(rows)
    null = [_pair_statistics(generator.permuted(rows, axis=0)) for _ in range(permutations)]
    return Covariance(
        n=len(rows),
        N=rows.shape[1],
        constant=int((~Y.any(axis=0)).sum()),
        mean_variance=float(moments.R) / rows.shape[1],
        participation=float(moments.R2 / moments.T) if moments.R2 > 0 and moments.T > 0 else None,
        observed=_pair_statistics(rows),
        null=_mean(null),
    )
