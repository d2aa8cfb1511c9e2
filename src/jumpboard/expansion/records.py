"""Rows of the tables `jumpboard` and `step_gains` from what a search has found at a site."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jumpboard.expansion.choice import STEEPEST
from jumpboard.expansion.gains import Gain, loss_bound
from jumpboard.expansion.search import Found


def jumpboard_rows(keys: Sequence[Mapping[str, Any]], found: Found) -> Iterator[dict[str, Any]]:
    """Rows of `jumpboard`; `keys` name the members, one mapping each."""
    place = found.place
    bound = loss_bound(place.net.classes)
    for choice in found.choices:
        steepest, check = place.steepest[choice.kind], found.checks[choice.kind]
        shown = choice.direction == STEEPEST
        for split, gain in choice.gains.items():
            clipped, steps = choice.clipped[split], choice.examined[split]
            limits = clipped.lower_limit(2 * bound, steps)
            for g, key in enumerate(keys):
                yield {
                    **key,
                    "site": place.site,
                    "jumpboard": choice.kind,
                    "direction": choice.direction,
                    "split": split,
                    "relative_site": place.site / place.net.depth,
                    "insert_form": place.net.insert_form,
                    "eta": float(choice.eta[g]),
                    "slope": float(choice.slope[g]),
                    "slope_sq": float(steepest.slope_sq[g]),
                    "checked_slope": float(check.checked[g]) if shown else None,
                    "measured_slope": float(check.measured[g]) if shown else None,
                    **_gain_columns(gain, g),
                    "clipped_gain": float(clipped.mean[g]),
                    "clipped_gain_se": float(clipped.error[g]),
                    "steps": steps,
                    "bernstein_low": float(limits[g]),
                    "bound": bound,
                }


def step_rows(keys: Sequence[Mapping[str, Any]], found: Found) -> Iterator[dict[str, Any]]:
    """Rows of `step_gains`, likewise."""
    place = found.place
    for grid in found.grids:
        scale = place.steepest[grid.kind].scale
        for split, gains in grid.gains.items():
            for step, gain in enumerate(gains):
                for g, key in enumerate(keys):
                    yield {
                        **key,
                        "site": place.site,
                        "jumpboard": grid.kind,
                        "step": step,
                        "split": split,
                        "relative_site": place.site / place.net.depth,
                        "eta": float(grid.steps[step, g]),
                        "relative_eta": float(grid.steps[step, g] / scale[g]),
                        "predicted_gain": float(grid.predicted[split][step, g]),
                        **_gain_columns(gain, g),
                    }


def _gain_columns(gain: Gain, g: int) -> dict[str, Any]:
    return {"n": gain.n, "gain": float(gain.mean[g]), "gain_se": float(gain.error[g])}
