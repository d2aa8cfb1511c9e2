"""Columns of an estimate with its two-sided 90 % jackknife limits and its plug-in version."""

from jumpboard.artefacts.tables import Column


def estimated(name: str, unit: str, description: str) -> tuple[Column, Column, Column, Column]:
    """`name`, `name_low`, `name_high` and `name_plugin`. Limits are null where the variance cannot be estimated."""
    return (
        Column(name, "float64", unit, f"{description}, unbiased: negative values mean not resolved, never clipped"),
        Column(f"{name}_low", "float64", unit, f"lower limit of {name}", nullable=True),
        Column(f"{name}_high", "float64", unit, f"upper limit of {name}", nullable=True),
        Column(f"{name}_plugin", "float64", unit, f"{name} of the empirical law, biased: for comparison only"),
    )
