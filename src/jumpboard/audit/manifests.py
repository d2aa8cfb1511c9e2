"""The files of a run against its two manifests: unlisted, missing, damaged, copied over one another, or newer.

`manifest.json` covers the artefacts, `records/manifest.json` the records and the first one. A manifest that is older
than a file is no damage: a target that was built alone leaves a file that holds together and a record that was begun
after every listed one had ended. Whether the file holds together is asked of the caller.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from jumpboard.artefacts import paths
from jumpboard.artefacts.compute import RECORDED, whole_record
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.verification import DIFFERS, Fault, entry_fault
from jumpboard.audit.run import RECORDS_MANIFEST, Folders
from jumpboard.configuration.plan import Artefact

OLDER = "manifest older than file: made alone after the manifest was written; the next full run lists it"

Faults = dict[tuple[str, str], str]
"""(place, path) -> reason."""


def listed_faults(folders: Folders) -> Faults:
    """What is wrong with the listed files that are at hand and should be."""
    found: Faults = {}
    for name, entry in folders.records.items():
        found["results", name] = entry_fault(folders.results, name, entry)
    for place, root in folders.places.items():
        for name, entry in folders.listed.get(place, {}).items():
            if place != "results" or name not in folders.not_shipped:
                found[place, name] = entry_fault(root, name, entry)
    return {which: reason for which, reason in found.items() if reason}


def unlisted(folders: Folders, others: Sequence[Path]) -> Iterator[Fault]:
    """Files in the run's folders that no manifest lists, but for those of running trainings, the released run, the
    report, and `others`: folders of the run that lie in one another."""
    known = {*folders.listed.get("results", {}), *folders.records, RECORDS_MANIFEST}
    for place, root in folders.places.items():
        names = known if place == "results" else set(folders.listed.get("figures", {}))
        left_out = {root / paths.RESUME, root / paths.RELEASED, *others}
        made_of_it = root / paths.REPORT
        for folder, below, files in os.walk(root):
            below[:] = sorted(name for name in below if Path(folder, name) not in left_out)
            links = [name for name in below if Path(folder, name).is_symlink()]
            for name in sorted([*files, *links]):
                path = Path(folder, name)
                if (
                    path.relative_to(root).as_posix() not in names
                    and path != made_of_it
                    and not _drawn_again(path, root)
                ):
                    yield Fault(str(path), "not listed in the manifest")


def _drawn_again(path: Path, root: Path) -> bool:
    """A PDF of a released figure, which is drawn from the listed table beside it."""
    return root.name == paths.RELEASED and path.suffix == ".pdf" and path.with_suffix(".parquet").is_file()


def drawn_again(folders: Folders) -> list[str]:
    """In words, how many PDFs of released figures there are, which no manifest lists."""
    root = folders.figures
    found = [path for path in sorted(root.rglob("*.pdf")) if _drawn_again(path, root)] if root else []
    return [f"{len(found)} PDFs of the released figures: in no manifest"] if found else []


def of_another_config(folders: Folders, artefacts: Sequence[Artefact]) -> Iterator[Fault]:
    """Files that the config asks for and the manifest lacks, or the other way round; jobs without a record."""
    wanted = {(one.place, one.path) for one in artefacts}
    listed = {(place, name) for place, entries in folders.listed.items() for name in entries}
    for place, name in sorted(wanted - listed):
        yield Fault(str(folders.places.get(place, Path(place)) / name), "in the config's grid, but not in the manifest")
    for place, name in sorted(listed - wanted):
        yield Fault(str(folders.places.get(place, Path(place)) / name), "in the manifest, but not in the config's grid")
    jobs = artefacts_of(artefacts)
    for one in artefacts:
        if record_of(folders, one, jobs) is None:
            yield Fault(str(folders.results / paths.RECORDS / one.path), "the job that made the file left no record")


def artefacts_of(artefacts: Sequence[Artefact]) -> dict[str, list[Artefact]]:
    """The artefacts of each job, by the job's name."""
    jobs: dict[str, list[Artefact]] = {}
    for one in artefacts:
        jobs.setdefault(job_of(one), []).append(one)
    return jobs


def job_of(one: Artefact) -> str:
    """A name for the job that makes a file."""
    return "/".join([one.rule, *map(str, one.keys.values())])


def record_of(folders: Folders, one: Artefact, jobs: Mapping[str, Sequence[Artefact]]) -> str | None:
    """The listed record of the job that made a file: it bears the name of one of the job's files."""
    for fellow in jobs[job_of(one)]:
        below = fellow.path if fellow.place == "results" else f"{fellow.rule}/{fellow.path}"
        name = f"{paths.RECORDS}/{Path(below).with_suffix('.json').as_posix()}"
        if name in folders.records:
            return name
    return None


def broken_records(folders: Folders, faults: Faults) -> Iterator[Fault]:
    """Records that are as listed and yet do not say what a record says."""
    for name in folders.records:
        path = folders.results / name
        if name != paths.MANIFEST and ("results", name) not in faults and whole_record(path) is None:
            yield Fault(str(path), f"not a whole record of a job; accepted: all of {', '.join(RECORDED)}")


def explained(
    folders: Folders, faults: Faults, artefacts: Sequence[Artefact], sound: Callable[[Artefact], bool]
) -> Iterator[Fault]:
    """The faults with a reason that tells a newer file, a copy of another, and damage apart."""
    jobs, ended = artefacts_of(artefacts), _last_end(folders, faults)
    by_digest = {entry["sha256"]: name for entries in folders.listed.values() for name, entry in entries.items()}
    known = {(one.place, one.path): one for one in artefacts}
    newer = {
        name
        for (_, name), reason in faults.items()
        if reason == DIFFERS and name in folders.records and _began(folders.results / name) > ended
    }
    for (place, name), reason in faults.items():
        path = folders.places[place] / name
        if reason == DIFFERS and name != paths.MANIFEST:
            one = known.get((place, name))
            again = name if name in folders.records else one and record_of(folders, one, jobs)
            copied = by_digest.get(sha256_of(path))
            if copied not in (None, name):
                reason = f"is a copy of {copied}"
            elif again in newer and (one is None or sound(one)):
                reason = OLDER
            else:
                reason = "damaged: its bytes are not those that the manifest lists"
        yield Fault(str(path), reason)


def _last_end(folders: Folders, faults: Faults) -> float:
    """When the last job ended of which the record is unchanged, s since 1970."""
    kept = [folders.results / name for name in folders.records if ("results", name) not in faults]
    return max(
        (record["started"] + record["wall_seconds"] for record in map(whole_record, kept) if record), default=0.0
    )


def _began(path: Path) -> float:
    record = whole_record(path)
    return record["started"] if record else 0.0
