"""Which nets can be widened without a change of their function, by family and switches alone. Imports no net, so that a
config can be told before any job runs."""

from collections.abc import Mapping
from typing import Any

EXACT = 1e-6  # up to this eps no output changes by more than rounding does
ACCEPTED = "resmlp with norm rms and eps of at most 1e-6, without gain and bias; resnet with norm rms and post_norm"


def refusal(family: str, switches: Mapping[str, Any]) -> str | None:
    """Why nets of a family with these switches cannot be widened exactly, or None; absent ones are the family's own."""
    if family == "resmlp":
        if switches.get("norm", "rms") != "rms":
            return "LayerNorm takes the mean over all coordinates from each, so that new ones do not stay 0"
        if switches.get("gain"):
            return "the norm has a trained gain per coordinate, and new coordinates have none"
        if switches.get("eps", EXACT) > EXACT:
            return "eps weighs more in the norm of a wider stream"
        return "a bias does not scale along with the stream" if switches.get("bias") else None
    if family == "resnet":
        norm = switches.get("norm", "batch")
        if norm == "batch":
            return "BatchNorm gives each channel a scale and shift of its own, so that the stream has none in common"
        if norm == "group":
            return "GroupNorm takes the mean over a group of channels, and more channels make other groups"
        return None if switches.get("post_norm") else "the norm inside a block also averages over new hidden units"
    return f"{family} has no rule"
