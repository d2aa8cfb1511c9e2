"""Run-level values: what claims read of one run (a trained net at one checkpoint, on one split), a number per column.

    metrics      the columns of the table
    signal       signal_raw, signal_scale_free    signal_feature_sq and feature_scale_free_sq at the relative site
                 signal_max                       the largest signal_feature_sq over k sites, mean over all choices of k
    moments      rho_off, rho_off_resolved        mean over sites; share of sites where its denominator T is resolved
    covariance   null_rho_off                     mean over sites, of permuted samples
                 draft_share, null_draft_share    share of sites that meet the draft's criterion; of permuted samples
                 tiny_variance_share              share of sites whose mean variance is below the criterion's limit
    tables of expansions: in `expansion_values`

k is the number of sites of the shallowest net: a maximum over all sites of deeper nets, which have more of them, grows
with depth by chance alone. `<value>_resolved` beside a square is 1 where its lower limit is above 0, else 0; of a
maximum it is that of the largest site.
Squares are never clipped. A value is None where the table has none or one that is not finite.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from jumpboard.claims.expansion_values import EXPANDED
from jumpboard.claims.observations import Identity, Row, Value, Values
from jumpboard.claims.runs import at_reference, by_site, named, run_of
from jumpboard.errors import InputError
from jumpboard.measure.covariance import DRAFT_LIMIT


def run_values(
    tables: Mapping[str, Iterable[Row]], names: Sequence[str], split: str, relative_site: str | None
) -> dict[Identity, Row]:
    """The runs that stand in all tables of `names`, with the values of each, and those that `metrics` calls diverged.

    Raises InputError for an unknown table, a run that stands twice, or one that lacks some of its sites.
    """
    trained = index_metrics(tables.get("metrics", ()))
    parts = [
        trained if name == "metrics" else _reduced(name, tables.get(name, ()), split, relative_site) for name in names
    ]
    diverged = {run: row for run, row in trained.items() if row["status"] != "trained"}
    diverged |= {at_reference(run): row for run, row in diverged.items()}
    joined = {run: _merged(part[run] for part in parts) for run in parts[0] if all(run in part for part in parts)}
    return diverged | joined


def index_metrics(rows: Iterable[Row]) -> dict[Identity, Row]:
    """Rows of `metrics` by run. Raises InputError where two are the same run."""
    indexed: dict[Identity, Row] = {}
    for row in rows:
        run = run_of(row)
        if run in indexed:
            raise InputError(f"table metrics: the run {named(run)} stands twice")
        indexed[run] = row
    return indexed


def site_of(relative_site: str, depth: int) -> int | None:
    """The site at a fraction of the depth, such as "1/3"; None where there is none just there."""
    site = Fraction(relative_site) * depth
    return int(site) if site.denominator == 1 and site <= depth else None


def expected_maximum(values: Sequence[float], k: int) -> float:
    """Mean over all choices of k of the values of the largest chosen one: the i-th smallest is it in C(i-1, k-1)."""
    ordered = sorted(values)
    weights = [comb(i, k - 1) for i in range(len(ordered))]
    return sum(weight * value for weight, value in zip(weights, ordered, strict=True)) / comb(len(ordered), k)


def of_signal(sites: Sequence[Row], site: int | None, k: int) -> Values:
    """Values of one run from its rows of `signal`, in the order of sites."""
    largest = max(sites, key=lambda row: float(row["signal_feature_sq"]))
    maximum = expected_maximum([float(row["signal_feature_sq"]) for row in sites], k)
    values: Values = {"signal_max": maximum, "signal_max_resolved": _resolved(largest)}
    if site is None:
        return values
    here = sites[site]
    return {
        **values,
        "signal_raw": here["signal_feature_sq"],
        "signal_raw_resolved": _resolved(here),
        "signal_scale_free": here["feature_scale_free_sq"],
        "signal_scale_free_resolved": _resolved(here),
    }


def of_moments(sites: Sequence[Row], site: int | None, k: int) -> Values:
    """Values of one run from its rows of `moments`."""
    return {
        "rho_off": _mean(row["rho_off"] for row in sites),
        "rho_off_resolved": _mean(row["rho_off_low"] is not None for row in sites),
    }


def of_covariance(sites: Sequence[Row], site: int | None, k: int) -> Values:
    """Values of one run from its rows of `covariance`. A stream of one unit has no pair, and is diagonal."""
    null = (row["null_max_covariance"] for row in sites)
    return {
        "null_rho_off": _mean(row["null_rho_off"] for row in sites),
        "draft_share": _mean(row["diagonal_by_draft"] for row in sites),
        "null_draft_share": _mean(value is None or value < DRAFT_LIMIT for value in null),
        "tiny_variance_share": _mean(row["mean_variance"] < DRAFT_LIMIT for row in sites),
    }


REDUCERS: dict[str, Callable[[Sequence[Row], int | None, int], Values]] = {
    "signal": of_signal,
    "moments": of_moments,
    "covariance": of_covariance,
}


def _reduced(table: str, rows: Iterable[Row], split: str, relative_site: str | None) -> dict[Identity, Row]:
    """Rows of expansions that are of all splits at once count on every one."""
    if table not in REDUCERS and table not in EXPANDED:
        accepted = ", ".join(sorted(["metrics", *REDUCERS, *EXPANDED]))
        raise InputError(f"no claim reads table '{table}'; accepted: {accepted}")
    by_run: dict[Identity, list[Row]] = defaultdict(list)
    for row in rows:
        if row.get("split", split) == split:
            by_run[run_of(row)].append(row)
    if table in EXPANDED:
        found = {run: EXPANDED[table](own) for run, own in by_run.items()}
    else:
        found = _measured(table, by_run, relative_site)
    return {
        run: {"status": "trained", **{name: _finite(value) for name, value in values.items()}}
        for run, values in found.items()
    }


def _measured(
    table: str, by_run: Mapping[Identity, Sequence[Row]], relative_site: str | None
) -> dict[Identity, Values]:
    shallowest: dict[tuple[str, str], int] = {}
    for own in by_run.values():
        net = (own[0]["dataset"], own[0]["arch"])
        shallowest[net] = min(own[0]["depth"], shallowest.get(net, own[0]["depth"]))
    found: dict[Identity, Values] = {}
    for run, own in by_run.items():
        depth, fewest = own[0]["depth"], shallowest[own[0]["dataset"], own[0]["arch"]] + 1
        place = None if relative_site is None else site_of(relative_site, depth)
        found[run] = REDUCERS[table](by_site(table, own), place, fewest)
    return found


def _merged(rows: Iterable[Row]) -> Row:
    return {name: value for row in rows for name, value in row.items()}


def _resolved(row: Row) -> float:
    low = row["signal_feature_sq_low"]
    return float(low is not None and low > 0)


def _mean(values: Iterable[Any]) -> float:
    return float(np.mean(list(values)))


def _finite(value: Value) -> Value:
    return value if value is not None and np.isfinite(value).all() else None
