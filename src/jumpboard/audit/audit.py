"""The audit of a finished run, from its results folder alone: `audit(results, figures) -> Report`.

    files       both manifests, re-hashed; unlisted and missing files; a manifest older than a file
    headers     code, config and parents of each file, down to the data
    tables      schema, units, rows that the config asks for, identities; collected tables
    checkpoints tensors, ancestry, copies
    numbers     verdicts, plotted tables and the README's table, computed again

Nothing is written and no torch is imported. Files may be hostile: one that makes a reader fail has failed.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from jumpboard.artefacts import paths
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.verification import DIFFERS, Fault
from jumpboard.audit.against import Comparison
from jumpboard.audit.ancestry import copies, record_fault
from jumpboard.audit.lineage import code_faults, header_fault, outside_parents
from jumpboard.audit.manifests import (
    OLDER,
    Faults,
    broken_records,
    drawn_again,
    explained,
    listed_faults,
    of_another_config,
    unlisted,
)
from jumpboard.audit.report import Report, sort_of
from jumpboard.audit.run import (
    WITH_HEADER,
    Folders,
    NotAtHandError,
    Run,
    figures_beside,
    inner_folders,
    key,
    open_configuration,
    open_folders,
)
from jumpboard.audit.tables import collected_fault, large_splits, table_fault
from jumpboard.audit.verdicts import card_fault, config_notes, figure_fault, pictures_note, readme_faults, recomputed
from jumpboard.configuration.plan import Artefact
from jumpboard.errors import InputError

Check = Callable[[Run, Artefact], str]


def audit(results: Path, figures: Path | None = None, against: Path | None = None) -> Report:
    """All checks, and a comparison with the run in `against`. Raises InputError where there is no run, or its manifests
    or config are not whole ones."""
    report = Report()
    run = opened(results, figures, report)
    if run is None:
        return report
    folders = run.folders
    for check, files in (
        (header_fault, run.at_hand(WITH_HEADER)),
        (table_fault, run.at_hand((".parquet",))),
        (record_fault, run.at_hand((".safetensors",))),
        (collected_fault, _of_rule(run, "collect")),
        (figure_fault, _of_rule(run, "draw_figure")),
        (card_fault, () if folders.not_shipped else _of_rule(run, "describe_dataset")),
    ):
        report.fail(_checked(run, files, check, report))
    report.fail(copies(run, report.failed))
    for faults, unknown in (code_faults(run, report.failed), readme_faults(run)):
        report.fail(faults)
        report.not_verified += unknown
    report.not_verified += [*outside_parents(run, report.failed), *config_notes(run), *drawn_again(folders)]
    report.not_verified += [*large_splits(run), *pictures_note(run)]
    _judge(run, report)
    if against is not None:
        _compare(run, against, report)
    return report


def _compare(run: Run, against: Path, report: Report) -> None:
    """Hold a run against another one, which must hold to its own manifests."""
    others = Report()
    other = opened(against, None, others)
    report.fail(Fault(file, reason) for file, reason in others.failed.items())
    if other is not None:
        comparison = Comparison(run, other, report.failed)
        report.fail(comparison.faults)
        report.not_verified += comparison.notes
        report.compared.update(comparison.counts)


def opened(results: Path, figures: Path | None, report: Report) -> Run | None:
    """The run, with its files held against the manifests; None where its config is damaged and the rest stays
    unchecked."""
    folders = open_folders(results, figures)
    try:
        configuration, resolved = open_configuration(results)
    except InputError:
        faults = listed_faults(folders)
        if ("results", paths.CONFIG) not in faults:
            raise
        report.fail(Fault(str(folders.places[place] / name), reason) for (place, name), reason in faults.items())
        report.not_verified.append("everything but the digests of files: the run's config is damaged")
        return None
    config = resolved["config"]
    if figures is None:
        folders = Folders(results, figures_beside(results, config), folders.listed, folders.records)
    faults = listed_faults(folders)
    listed = folders.listed.get("results", {})
    either = {name: frozenset({entry["sha256"], *_found(folders, name, faults)}) for name, entry in listed.items()}
    run = Run(folders, configuration, resolved, either)
    told = list(explained(folders, faults, run.artefacts, lambda one: _sound(run, one, faults)))
    report.fail(told)
    newer = {fault.file for fault in told if fault.reason == OLDER}
    here = {name: str(folders.results / name) for name in listed}
    strange = {f"{place}/{name}" for place, name in faults if str(folders.places[place] / name) not in newer}
    strange |= {key(one) for one in run.artefacts if one.path not in folders.listed.get(one.place, {})}
    digests = {name: either[name] - ({listed[name]["sha256"]} if here[name] in newer else set()) for name in listed}
    run = replace(run, digests=digests, damaged=frozenset(strange))
    report.fail(broken_records(folders, faults))
    report.fail(of_another_config(folders, run.artefacts))
    report.fail(unlisted(folders, list(inner_folders(folders, config))))
    report.not_shipped += sorted(folders.not_shipped)
    if folders.figures is None:
        report.not_verified.append("figures: no folder at hand; name it by --figures")
    _count(folders, report)
    return run


def _found(folders: Folders, name: str, faults: Faults) -> Iterator[str]:
    """The SHA-256 of a listed result whose bytes are others than listed."""
    if faults.get(("results", name)) == DIFFERS:
        yield sha256_of(folders.results / name)


def _count(folders: Folders, report: Report) -> None:
    listed = [("results", name) for name in folders.records]
    listed += [(place, name) for place in folders.places for name in folders.listed.get(place, {})]
    for place, name in listed:
        if place != "results" or name not in folders.not_shipped:
            report.checked[sort_of(name)] += 1


def _of_rule(run: Run, rule: str) -> Iterable[Artefact]:
    return (one for one in run.at_hand((".parquet",)) if one.rule == rule)


def _sound(run: Run, one: Artefact, faults: Faults) -> bool:
    """Whether a file that no manifest lists as it is holds together with its parents; a picture as its table does."""
    kin = [
        other
        for other in run.at_hand(WITH_HEADER)
        if (other.rule, other.keys) == (one.rule, one.keys)
        and faults.get((other.place, other.path), DIFFERS) == DIFFERS
    ]
    try:
        return bool(kin) and not any(header_fault(run, other) for other in kin)
    except Exception:  # whatever a hostile file makes a reader raise
        return False


def _checked(run: Run, files: Iterable[Artefact], check: Check, report: Report) -> Iterable[Fault]:
    for one in files:
        path = str(run.path(one))
        if path not in report.failed:
            try:
                reason = check(run, one)
            except NotAtHandError as error:
                report.not_verified.append(f"{path}: not held against {error}, which is damaged or not there")
                continue
            except InputError as error:
                reason = str(error).removeprefix(f"{path}: ")
            except Exception as error:  # whatever a hostile file makes a reader raise
                reason = f"cannot be checked: {type(error).__name__}: {error}"
            if reason:
                yield Fault(path, reason)


def _judge(run: Run, report: Report) -> None:
    path = run.folders.results / paths.CLAIMS
    try:
        report.verdicts, reason = recomputed(run)
        report.fail([Fault(str(path), reason)] if reason else [])
    except NotAtHandError as error:
        report.not_verified.append(f"verdicts: {error} is damaged or not there")
    except Exception as error:  # likewise
        report.not_verified.append(f"verdicts: they cannot be computed from these tables: {error}")
