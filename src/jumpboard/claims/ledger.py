"""The ledger: every claim of config/claims.yaml, on every net it names, turned into rows of table `claims`.

The expected runs are those of the cells that the config trains or measures. A claim is `not evaluated` where these are
fewer than the rule's minimum or an expected run is missing or diverged; `inconclusive` where its control is not null;
else the verdict is the rule's. Each checkpoint is a row of its own. At a loss level (`loss_<x>`, nets at one training
loss) only widths count at which every run came there. Claims on expansions are judged at `reference`, the checkpoint
that was expanded; the configuration names it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jumpboard.artefacts.provenance import config_digest
from jumpboard.claims.base import INCONCLUSIVE, NOT_EVALUATED, SUPPORTED, Rule
from jumpboard.claims.observations import Observations, Row, at_level, observe
from jumpboard.claims.registry import rule_of
from jumpboard.claims.run_values import run_values, site_of
from jumpboard.claims.runs import REFERENCE
from jumpboard.errors import InputError

LEVEL = "loss_"
MOMENTS = {"final": "final nets", "best_validation": "nets at best validation"}
ALL_SIZES = 0
FITTED = ("fits", "betas")  # tables of what is fitted to many runs at once


def evaluate(
    claims: Mapping[str, Mapping[str, Any]],
    cells: Mapping[str, Sequence[Row]],
    tables: Mapping[str, Sequence[Row]],
) -> list[dict[str, Any]]:
    """Rows of table `claims`.

    `tables` holds rows by table, `cells` the cells expected in each: mappings of dataset, arch, depth, width, samples
    and seeds, those of expansions also of the checkpoint `reference`. A claim on a table that is not in `cells`, as no
    rule makes it, is not evaluated. Raises InputError for an unknown kind of rule, columns that are not the rule's, a
    table that cannot be read, or a run that stands twice or lacks some of its sites.
    """
    return [
        row
        for claim, entry in claims.items()
        for net in entry["evaluated_on"]
        for row in _on_net(claim, entry, net, cells, tables)
    ]


def _on_net(
    claim: str,
    entry: Mapping[str, Any],
    net: Mapping[str, str],
    cells: Mapping[str, Sequence[Row]],
    tables: Mapping[str, Sequence[Row]],
) -> list[dict[str, Any]]:
    rule = rule_of(entry["rule"]["kind"])
    columns, checkpoints = tuple(entry["columns"]), entry["checkpoints"]
    accepted = tuple(column.format(value=columns[0]) for column in rule.COLUMNS)
    if columns != accepted:
        named = ", ".join(accepted)
        raise InputError(f"claim {claim}: columns {entry['columns']} are not those of its rule; accepted: {named}")
    place = net.get("relative_site")
    own = [
        cell
        for cell in cells.get(entry["tables"][0], ())
        if (cell["dataset"], cell["arch"]) == (net["dataset"], net["arch"])
        and (place is None or site_of(place, cell["depth"]) is not None)
    ]
    split = net.get("split", "test")
    key = {"claim": claim, "dataset": net["dataset"], "arch": net["arch"], "split": split} | _stated(entry, rule)
    if not own:
        name = f"{net['dataset']}/{net['arch']}"
        where = {"samples": ALL_SIZES, "checkpoint": checkpoints[0], "configuration": name}
        unmade = [f"table {table}" for table in entry["tables"] if table not in cells]
        reason = f"no rule makes {' and '.join(unmade)} yet" if unmade else f"the config has no cells of {name} for it"
        return [key | where | _unjudged(reason, unmade)]
    runs = run_values(tables, [table for table in entry["tables"] if table not in FITTED], split, place)
    fitted = _fitted(entry["tables"], tables, own[0])
    rows = []
    for size in sorted({cell["samples"] for cell in own}) if rule.BY_SAMPLES else [ALL_SIZES]:
        sized = [cell for cell in own if size in (ALL_SIZES, cell["samples"])]
        for checkpoint in checkpoints:
            part = at_level(runs, sized, checkpoint) if checkpoint.startswith(LEVEL) else sized
            seen = observe(runs, part or sized, checkpoint, columns)
            if fitted is not None:
                here = (row for row in fitted if row.get("checkpoint", checkpoint) == checkpoint)
                seen = replace(seen, fitted=tuple(row for row in here if size in (ALL_SIZES, row["samples"])))
            if fitted is not None and not seen.fitted and not seen.missing:
                judged = _unjudged("the config fits no such law", ())
            elif part:
                judged = _judged(claim, rule, entry["rule"]["minimum"], seen)
            else:
                judged = _unjudged(f"at no width have all runs a checkpoint {checkpoint}", ())
            where = {
                "samples": size,
                "checkpoint": checkpoint,
                "configuration": _configuration(net, checkpoint, seen, sized),
            }
            rows.append(key | where | judged)
    return rows


def _fitted(named: Sequence[str], tables: Mapping[str, Sequence[Row]], cell: Row) -> list[Row] | None:
    """The rows of a cell's net in the fitted tables that a claim reads; None where it reads none."""
    read = [table for table in named if table in FITTED]
    net = (cell["dataset"], cell["arch"])
    rows = [row for table in read for row in tables[table] if (row["dataset"], row["arch"]) == net]
    return rows if read else None


def _judged(claim: str, rule: Rule, minimum: Mapping[str, int], seen: Observations) -> dict[str, Any]:
    found = {name: len(getattr(seen, name)) for name in ("depths", "widths", "samples", "seeds")}
    short = [f"{found[name]} {name} of at least {minimum[name]}" for name in found if found[name] < minimum[name]]
    if short:
        return _unjudged(f"the grid has {', '.join(short)}", seen.missing)
    if seen.missing:
        return _unjudged("expected runs are missing or diverged", seen.missing)
    ruling = rule.judge(seen)
    decided = SUPPORTED if ruling.verdict == INCONCLUSIVE else ruling.verdict
    null = rule.null(seen, claim, decided)
    if null.share > null.tolerated and ruling.verdict != INCONCLUSIVE:
        reason = f"control not null: {null.share:.0%} {null.meaning}"
        ruling = replace(ruling, verdict=INCONCLUSIVE, reason=reason)
    main = ruling.main
    statistic = {"statistic": ruling.statistic} if ruling.statistic else {}
    return {
        **statistic,
        "verdict": ruling.verdict,
        "reason": ruling.reason,
        "estimate": main.estimate if main.n else None,
        "low": main.low,
        "high": main.high,
        "n": main.n,
        "intervals": "; ".join(f"{name}: {interval}" for name, interval in ruling.intervals.items()),
        "missing": "",
        "control_share": null.share,
    }


def _unjudged(reason: str, missing: Sequence[str]) -> dict[str, Any]:
    empty = {"estimate": None, "low": None, "high": None, "n": 0, "intervals": "", "control_share": None}
    return {"verdict": NOT_EVALUATED, "reason": reason, "missing": "; ".join(missing), **empty}


def _stated(entry: Mapping[str, Any], rule: Rule) -> dict[str, Any]:
    texts = {key: str(entry[key]) for key in ("paper", "place", "source", "statement", "control")}
    bounds = dict(zip(("supports_from", "supports_to"), rule.SUPPORTING, strict=True))
    return {**texts, **bounds, "statistic": rule.STATISTIC, "rule_digest": rule_digest(entry)}


def rule_digest(entry: Mapping[str, Any]) -> str:
    """SHA-256 of a claim's entry but for the names of figures, which decide nothing."""
    return config_digest({name: value for name, value in entry.items() if name != "figures"})


def _configuration(net: Mapping[str, str], checkpoint: str, seen: Observations, cells: Sequence[Row]) -> str:
    parts = [f"{net['dataset']}/{net['arch']}", _span("depth", seen.depths)]
    parts += [_listed("width", seen.widths) if checkpoint.startswith(LEVEL) else _span("width", seen.widths)]
    parts += [f"M = {', '.join(str(size) for size in seen.samples)}"]
    expanded = sorted({cell["reference"] for cell in cells}) if checkpoint == REFERENCE else [checkpoint]
    parts += [" and ".join(_nets(moment) for moment in expanded)]
    parts += [f"{net['split']} split"] if "split" in net else []
    parts += [f"site {net['relative_site']} of depth"] if "relative_site" in net else []
    return ", ".join([*parts, f"{len(seen.seeds)} seed{'s' if len(seen.seeds) > 1 else ''}"])


def _nets(checkpoint: str) -> str:
    level = f"nets at training loss {checkpoint.removeprefix(LEVEL)}"
    return MOMENTS.get(checkpoint, level if checkpoint.startswith(LEVEL) else f"nets at {checkpoint.replace('_', ' ')}")


def _span(name: str, values: Sequence[int]) -> str:
    return f"{name} {values[0]}" if len(values) == 1 else f"{name}s {values[0]}-{values[-1]}"


def _listed(name: str, values: Sequence[int]) -> str:
    return f"{name}{'s' if len(values) > 1 else ''} {' and '.join(str(value) for value in values)}"
