"""Moments, alignment, bounds, limits and plug-ins of one or two row sets of any size.

One set: n rows of one law, and means over m = n rows. Two sets: n train and m test rows, independent of each other, of
one law or two (see `cross` for what S, V, T, R, R2 and diag then stand for).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jumpboard.measure.alignment import PROBABILITIES, RATIOS, alignment, plug_in_alignment
from jumpboard.measure.cross import plug_in_cross, unbiased_cross
from jumpboard.measure.cross_jackknife import delete_block_cross_sums
from jumpboard.measure.intervals import NAMES, Estimate, Law, Replicates, moment_intervals
from jumpboard.measure.jackknife import delete_block_sums
from jumpboard.measure.moments import plug_in, unbiased
from jumpboard.measure.rows import CentredRows

STATISTICS = (*NAMES, *RATIOS[:3], "n_eff", RATIOS[3], *PROBABILITIES)


@dataclass(frozen=True)
class Summary:
    """`estimates` holds `STATISTICS` in their order, `plug_in` the same but n_eff, which is no estimate."""

    n: int
    m: int
    N: int
    estimates: Mapping[str, Estimate]
    plug_in: Mapping[str, float | None]


def _measured(sets: Sequence[CentredRows]) -> tuple[Law, Law, list[Replicates]]:
    if len(sets) == 1:
        sums, without = delete_block_sums(sets[0])
        return unbiased(sums), plug_in(sums), [Replicates(unbiased(without), sets[0].sizes)]
    cross, *without_each = delete_block_cross_sums(*sets)
    replicates = [
        Replicates(unbiased_cross(without), rows.sizes) for without, rows in zip(without_each, sets, strict=True)
    ]
    return unbiased_cross(cross), plug_in_cross(cross), replicates


def summarise(rows: CentredRows, test: CentredRows | None = None) -> Summary:
    """Measure one row set, or train and test rows of the same N."""
    sets = [rows] if test is None else [rows, test]
    n, m = rows.n, sets[-1].n
    moments, biased, replicates = _measured(sets)
    estimates = dict(moment_intervals(moments, replicates))
    estimates.update(alignment(moments, estimates["S"], replicates, n, m))
    values: dict[str, float | None] = {name: float(getattr(biased, name)) for name in NAMES}
    values.update(plug_in_alignment(biased, n, m))
    return Summary(
        n=n,
        m=m,
        N=rows.N,
        estimates={name: estimates[name] for name in STATISTICS},
        plug_in={name: values[name] for name in STATISTICS if name != "n_eff"},
    )
