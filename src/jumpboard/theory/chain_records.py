"""Rows of the tables `betas` and `fitted_chain` from rows of `chain`.

Risks are losses on fresh samples, on test samples where there are none. A seed counts if every net of its chain was
trained and has a finite loss.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jumpboard.theory.fitting import Parameter
from jumpboard.theory.forms import FloatArray
from jumpboard.theory.power_law import (
    AGREE,
    OPEN,
    agreement,
    exponent_in_parameters,
    permuted_agreements,
    two_betas,
)

Row = Mapping[str, Any]

CELL = ("dataset", "arch", "depth", "width", "samples")
SUBLINEAR = 0.5  # nu of the sub-linear coupling


def chain_records(
    rows: Sequence[Row], r_star: float | None, resamples: int, permutations: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of `betas` and of `fitted_chain`; `r_star` is the known least risk in nats, None where it is not known."""
    cells: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        cells[tuple(row[key] for key in CELL)].append(row)
    betas: list[dict[str, Any]] = []
    fitted: list[dict[str, Any]] = []
    for cell, own in cells.items():
        split = "test" if any(row["net_fresh_loss"] is None for row in own) else "fresh"
        k, risk, signal = _chains(own, f"net_{split}_loss")
        if len(risk):
            name = dict(zip(CELL, cell, strict=True))
            told, points = _records(k, risk, signal, r_star, resamples, permutations)
            betas += [name | {"risk_split": split} | row for row in told]
            fitted += [name | row for row in points]
    return betas, fitted


def _chains(rows: Sequence[Row], loss: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """k [n], risks and squared signals [S, n] of the seeds that count."""
    by_seed: dict[int, dict[int, Row]] = defaultdict(dict)
    for row in rows:
        by_seed[row["seed"]][row["k"]] = row
    blocks = sorted({row["k"] for row in rows})
    sound = [
        [chain[k] for k in blocks]
        for _, chain in sorted(by_seed.items())
        if len(chain) == len(blocks) and all(_sound(row, loss) for row in chain.values())
    ]
    columns = [[[row[name] for row in chain] for chain in sound] for name in (loss, "signal_feature_sq")]
    risk, signal = (np.array(column, dtype=np.float64).reshape(len(sound), len(blocks)) for column in columns)
    return np.array(blocks, dtype=np.float64), risk, signal


def _sound(row: Row, loss: str) -> bool:
    finite = np.isfinite(row[loss]) and np.isfinite(row["signal_feature_sq"])
    return bool(row["status"] == "trained" and finite and row[loss] > 0)


def _records(
    k: FloatArray, risk: FloatArray, signal: FloatArray, r_star: float | None, resamples: int, permutations: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    found = two_betas(k, risk, signal, r_star, resamples)
    told = agreement(found.beta)
    permuted = permuted_agreements(k, risk, signal, r_star, permutations, resamples)
    shared = {"agreement": told, "r_star_known": r_star is not None}
    betas = [
        {
            "estimator": name,
            **_limits(one, "beta", "low", "high"),
            "reason": one.reason,
            "exponent_linear": _exponent(one, 0.0),
            "exponent_sublinear": _exponent(one, SUBLINEAR),
            **_limits(found.r_star, "r_star", "r_star_low", "r_star_high"),
            "points": len(k),
            "seeds": len(risk),
            "share_at_optimum": found.share,
            "control_share": permuted.count(AGREE if told == OPEN else told) / permutations,
            **shared,
        }
        for name, one in found.beta.items()
    ]
    both: dict[str, Any] = {}
    for name, one in found.beta.items():
        both |= _limits(one, f"{name}_beta", f"{name}_low", f"{name}_high") | {f"{name}_reason": one.reason}
    points = [
        {
            "k": int(k[place]),
            "excess": float(found.excess[place]),
            "fitted_excess": float(found.curve[place]),
            "signal_feature_sq": float(found.signal[place]),
            "fitted_signal": float(found.line[place]) if np.isfinite(found.line[place]) else None,
            **both,
            **shared,
        }
        for place in range(len(k))
    ]
    return betas, points


def _limits(one: Parameter, estimate: str, low: str, high: str) -> dict[str, float | None]:
    return {estimate: one.estimate, low: one.low, high: one.high}


def _exponent(one: Parameter, nu: float) -> float | None:
    return None if one.estimate is None else exponent_in_parameters(one.estimate, nu)
