"""The ledger: every claim of config/claims.yaml, on every net it names, turned into rows of table `claims`.

The expected runs are those of the grid. A claim is `not evaluated` where the grid is smaller than the rule's minimum or
an expected run is missing or diverged; `inconclusive` where its control is not null; else the verdict is the rule's.
Final losses are primary, those of the best validation a second row.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jumpboard.artefacts.provenance import config_digest
from jumpboard.claims.base import INCONCLUSIVE, NOT_EVALUATED, SUPPORTED, Rule
from jumpboard.claims.controls import PERMUTATIONS, TOLERATED, share
from jumpboard.claims.observations import Identity, Observations, Row, index_metrics, observe
from jumpboard.claims.registry import rule_of
from jumpboard.errors import InputError

CHECKPOINTS = {"final": "final loss", "best_validation": "loss at best validation"}
ALL_SIZES = 0


def evaluate(
    claims: Mapping[str, Mapping[str, Any]], cells: Sequence[Row], metrics_rows: Iterable[Row]
) -> list[dict[str, Any]]:
    """Rows of table `claims`.

    `cells` are the expected ones, as mappings of dataset, arch, depth, width, samples and seeds. Raises InputError for
    an unknown kind of rule, columns that are not the rule's, or a run that stands twice in `metrics_rows`.
    """
    indexed = index_metrics(metrics_rows)
    return [
        row
        for claim, entry in claims.items()
        for net in entry["evaluated_on"]
        for row in _on_net(claim, entry, net["dataset"], net["arch"], cells, indexed)
    ]


def _on_net(
    claim: str,
    entry: Mapping[str, Any],
    dataset: str,
    arch: str,
    cells: Sequence[Row],
    indexed: Mapping[Identity, Row],
) -> list[dict[str, Any]]:
    rule = rule_of(entry["rule"]["kind"])
    if tuple(entry["columns"]) != rule.COLUMNS:
        accepted = ", ".join(rule.COLUMNS)
        raise InputError(f"claim {claim}: columns {entry['columns']} are not those of its rule; accepted: {accepted}")
    net = f"{dataset}/{arch}"
    own = [cell for cell in cells if (cell["dataset"], cell["arch"]) == (dataset, arch)]
    named = {"claim": claim, "dataset": dataset, "arch": arch, **_stated(entry, rule)}
    if not own:
        reason = f"the grid has no cells of {net}"
        key = {"samples": ALL_SIZES, "checkpoint": "final", "configuration": net}
        return [named | key | _unjudged(reason, ())]
    sizes = sorted({cell["samples"] for cell in own}) if rule.BY_SAMPLES else [ALL_SIZES]
    rows = []
    for size in sizes:
        part = [cell for cell in own if size in (ALL_SIZES, cell["samples"])]
        for checkpoint, loss in CHECKPOINTS.items():
            seen = observe(indexed, part, checkpoint, rule.COLUMNS)
            key = {"samples": size, "checkpoint": checkpoint, "configuration": f"{net}, {_grid(seen, loss)}"}
            rows.append(named | key | _judged(claim, rule, entry["rule"]["minimum"], seen))
    return rows


def _judged(claim: str, rule: Rule, minimum: Mapping[str, int], seen: Observations) -> dict[str, Any]:
    found = {name: len(getattr(seen, name)) for name in ("depths", "widths", "samples", "seeds")}
    short = [f"{found[name]} {name} of at least {minimum[name]}" for name in found if found[name] < minimum[name]]
    if short:
        return _unjudged(f"the grid has {', '.join(short)}", seen.missing)
    if seen.missing:
        return _unjudged("expected runs are missing or diverged", seen.missing)
    ruling = rule.judge(seen)
    decided = SUPPORTED if ruling.verdict == INCONCLUSIVE else ruling.verdict
    null = share(rule, seen, claim, decided)
    if null > TOLERATED:
        reason = f"control not null: {null:.0%} of {PERMUTATIONS} permutations are called {decided}"
        ruling = replace(ruling, verdict=INCONCLUSIVE, reason=reason)
    main = ruling.main
    return {
        "verdict": ruling.verdict,
        "reason": ruling.reason,
        "estimate": main.estimate,
        "low": main.low,
        "high": main.high,
        "n": main.n,
        "intervals": "; ".join(f"{name}: {interval}" for name, interval in ruling.intervals.items()),
        "missing": "",
        "control_share": null,
    }


def _unjudged(reason: str, missing: Sequence[str]) -> dict[str, Any]:
    empty = {"estimate": None, "low": None, "high": None, "n": 0, "intervals": "", "control_share": None}
    return {"verdict": NOT_EVALUATED, "reason": reason, "missing": "; ".join(missing), **empty}


def _stated(entry: Mapping[str, Any], rule: Rule) -> dict[str, str]:
    texts = {key: str(entry[key]) for key in ("paper", "place", "source", "statement", "control")}
    return {**texts, "statistic": rule.STATISTIC, "rule_digest": config_digest(entry)}


def _grid(seen: Observations, loss: str) -> str:
    sizes = ", ".join(str(size) for size in seen.samples)
    seeds = f"{len(seen.seeds)} seed{'s' if len(seen.seeds) > 1 else ''}"
    return f"{_span('depth', seen.depths)}, {_span('width', seen.widths)}, M = {sizes}, {loss}, {seeds}"


def _span(name: str, values: Sequence[int]) -> str:
    return f"{name} {values[0]}" if len(values) == 1 else f"{name}s {values[0]}-{values[-1]}"
