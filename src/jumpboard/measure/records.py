"""Rows of the tables `signal`, `moments`, `covariance` and `correlations` from one site's sums. Pure functions."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from jumpboard.measure.covariance import covariance
from jumpboard.measure.intervals import NAMES, Estimate
from jumpboard.measure.moments import FloatArray, centre
from jumpboard.measure.sites import SiteMeasures
from jumpboard.nets.base import Site

Row = dict[str, Any]


def _with_limits(name: str, interval: Estimate, plugin: float) -> Row:
    return {
        name: interval.estimate,
        f"{name}_low": interval.low,
        f"{name}_high": interval.high,
        f"{name}_plugin": plugin,
    }


def signal_row(place: Mapping[str, Any], site: Site, depth: int, step: int, measured: SiteMeasures) -> Row:
    """A row of `signal`. Scale-free forms are null where the net passes no gradient at all.

    Raises ValueError where the feature signal was not measured.
    """
    moments, feature = measured.moments, measured.feature
    if feature is None:
        raise ValueError("measured without the weights of random features")
    rms_sq = float(moments.R + moments.S)
    phi_sq = feature.phi_mean_square
    signal_sq = feature.interval.estimate
    return {
        **place,
        "relative_site": site.index / depth,
        "stationary": site.shifted,
        "step": step,
        "n": int(moments.n),
        "units": site.units,
        **_with_limits("signal_bias_sq", measured.intervals["S"], float(measured.plug_in.S)),
        **_with_limits("signal_feature_sq", feature.interval, feature.plug_in),
        "signal_rms_sq": rms_sq,
        "phi_rms_sq": phi_sq,
        "bias_scale_free_sq": float(moments.S) / rms_sq if rms_sq > 0 else None,
        "feature_scale_free_sq": signal_sq / (rms_sq * phi_sq) if rms_sq > 0 and signal_sq is not None else None,
    }


def moments_row(place: Mapping[str, Any], site: Site, measured: SiteMeasures) -> Row:
    """A row of `moments`."""
    row: Row = {**place, "n": int(measured.moments.n), "units": site.units}
    for name in NAMES:
        row |= _with_limits(name, measured.intervals[name], float(getattr(measured.plug_in, name)))
    return row


def covariance_row(place: Mapping[str, Any], rows: FloatArray, draws: np.random.Generator, permutations: int) -> Row:
    """A row of `covariance` from pooled rows [n, N]."""
    found = covariance(rows, draws, permutations)
    observed, null = (
        {name.replace("plug_in", "plugin"): value for name, value in asdict(one).items()}
        for one in (found.observed, found.null)
    )
    return {
        **place,
        "n": found.n,
        "units": found.N,
        "constant": found.constant,
        "mean_variance": found.mean_variance,
        "participation": found.participation,
        "diagonal_by_draft": found.diagonal_by_draft,
        **observed,
        **{f"null_{name}": value for name, value in null.items()},
    }


def covariance_matrix(rows: FloatArray) -> FloatArray:
    """Covariances [N, N] of rows [n, N], divisor n - 1."""
    _, centred = centre(rows)
    matrix: FloatArray = centred.T @ centred / (len(rows) - 1)
    return matrix


def correlation_matrix(covariances: FloatArray) -> FloatArray:
    """Correlations of covariances [N, N]; 0 for a coordinate that never varies."""
    sd = np.sqrt(covariances.diagonal())
    scale = np.outer(sd, sd)
    matrix: FloatArray = np.divide(covariances, scale, out=np.zeros_like(covariances), where=scale > 0)
    return matrix


def correlation_rows(place: Mapping[str, Any], rows: FloatArray, draws: np.random.Generator) -> Iterator[Row]:
    """Rows of `correlations`: every pair of coordinates and each with itself, with one permuted null."""
    covariances = covariance_matrix(rows)
    observed, null = (correlation_matrix(one) for one in (covariances, covariance_matrix(draws.permuted(rows, axis=0))))
    for i, j in zip(*np.triu_indices(len(observed)), strict=True):
        yield {
            **place,
            "i": int(i),
            "j": int(j),
            "covariance": float(covariances[i, j]),
            "correlation": float(observed[i, j]),
            "null_correlation": float(null[i, j]),
        }
