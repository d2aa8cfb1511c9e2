"""Rows of the tables `fits` and `fitted` from rows of `metrics`: laws in each size, in parameters, and jointly.

A law in one size holds the others fixed; of slices where the size has fewer than two values there is none, and where it
has fewer than `DISTINCT` the power law alone is fitted, and said not to be identified. Diverged nets are left out.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumpboard.theory.comparison import extrapolated, largest, permuted_within, preferred, rivals_of, scores
from jumpboard.theory.fitting import DISTINCT, Fit, fit
from jumpboard.theory.forms import FloatArray

Row = Mapping[str, Any]

SIZES = ("depth", "width", "samples")
HELD = {  # variable -> sizes that are held fixed
    "depth": ("width", "samples"),
    "width": ("depth", "samples"),
    "samples": ("depth", "width"),
    "parameters": ("samples",),
    "joint": (),
}


def fit_records(
    metrics: Sequence[Row], checkpoints: Sequence[str], resamples: int, permutations: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of `fits` and of `fitted` for the nets of one data set and arch."""
    fits: list[dict[str, Any]] = []
    fitted: list[dict[str, Any]] = []
    for checkpoint in checkpoints:
        nets = sorted(
            (row for row in metrics if row["checkpoint"] == checkpoint and _trained(row)),
            key=lambda row: tuple(row[key] for key in (*SIZES, "seed")),
        )
        for variable, held, own in _slices(nets):
            sizes = _varying(own) if variable == "joint" else (variable,)
            rows, points = _records(own, variable, sizes, resamples, permutations)
            name = {key: own[0][key] for key in ("dataset", "arch", "checkpoint")} | {"variable": variable}
            fits += [name | held | row for row in rows]
            fitted += [
                name | {key: net[key] for key in (*SIZES, "seed", "test_loss")} | point
                for net, point in zip(own, points, strict=True)
            ]
    return fits, fitted


def _trained(row: Row) -> bool:
    return bool(row["status"] == "trained" and np.isfinite(row["test_loss"]) and row["test_loss"] > 0)


def _varying(nets: Sequence[Row]) -> tuple[str, ...]:
    return tuple(size for size in SIZES if len({net[size] for net in nets}) > 1)


def _slices(nets: Sequence[Row]) -> Iterator[tuple[str, dict[str, int], list[Row]]]:
    """Variable, sizes held fixed (0: varies), and the nets, for each fit that there is something to fit in."""
    for variable, held in HELD.items():
        slices: dict[tuple[int, ...], list[Row]] = defaultdict(list)
        for net in nets:
            slices[tuple(net[size] for size in held)].append(net)
        for own in slices.values():
            fixed = {size: own[0][size] if size in held else 0 for size in SIZES}
            sizes = _varying(own)
            if len(sizes) > 1 if variable in ("joint", "parameters") else variable in sizes:
                yield variable, fixed, own


def _records(
    nets: Sequence[Row], variable: str, sizes: Sequence[str], resamples: int, permutations: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    x = np.array([[net[size] for net in nets] for size in sizes], dtype=np.float64)
    y = np.array([net["test_loss"] for net in nets], dtype=np.float64)
    seeds = [net["seed"] for net in nets]
    distinct = min(len(set(one)) for one in x.tolist())
    law, *rivals = rivals_of(len(sizes))
    forms = [law, *rivals] if distinct >= DISTINCT or variable == "joint" else [law]
    fits = {form: fit(form, x, y, sizes, seeds, resamples) for form in forms}
    real = {form: scores(form, x, y[None], sizes) for form in forms}
    aicc, error = ({form: getattr(one, name) for form, one in real.items()} for name in ("aicc", "error"))
    told = preferred(aicc, error)[0] if len(forms) > 1 else ""
    control = _control(forms, x, y, seeds, permutations) if len(sizes) == 1 and len(forms) > 1 else {}
    rows = [
        {
            "form": form,
            "parameter": name,
            "estimate": one.estimate,
            "low": one.low,
            "high": one.high,
            "reason": one.reason,
            "rows": len(y),
            "distinct": distinct,
            "seeds": len(set(seeds)),
            "starts": fits[form].optimum.starts,
            "share_at_optimum": fits[form].optimum.share,
            "objective": fits[form].optimum.objective,
            "aicc": _finite(aicc[form][0]),
            "extrapolation_error": _finite(error[form][0]),
            "preferred": told,
            "control_share": control.get(form),
        }
        for form in forms
        for name, one in fits[form].parameters.items()
    ]
    shown = np.array([net["parameters"] for net in nets], dtype=np.float64) if variable == "joint" else x[0]
    return rows, _points(shown, y, fits[law], largest(x), extrapolated(law, x, y, sizes))


def _control(
    forms: Sequence[str], x: FloatArray, y: FloatArray, seeds: Sequence[int], permutations: int
) -> dict[str, float]:
    """The share of permutations that prefer each form."""
    targets = permuted_within(y, seeds, permutations)
    drawn = {form: scores(form, x, targets) for form in forms}
    told = preferred({form: one.aicc for form, one in drawn.items()}, {form: one.error for form, one in drawn.items()})
    return {form: told.count(form) / permutations for form in forms}


def _points(
    x: FloatArray, y: FloatArray, law: Fit, held_out: NDArray[np.bool_], predicted: FloatArray | None
) -> list[dict[str, Any]]:
    alpha = law.parameters.get("alpha")
    exponent = {
        "alpha": alpha and alpha.estimate,
        "alpha_low": alpha and alpha.low,
        "alpha_high": alpha and alpha.high,
    }
    return [
        {
            "x": float(x[net]),
            "fitted": float(law.curve[net]),
            "low": None if law.curve_low is None else _finite(law.curve_low[net]),
            "high": None if law.curve_high is None else _finite(law.curve_high[net]),
            "residual": float(np.log(y[net] / law.curve[net])),
            "held_out": bool(held_out[net]),
            "predicted": None if predicted is None else _finite(predicted[net]),
            **exponent,
        }
        for net in range(len(y))
    ]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
