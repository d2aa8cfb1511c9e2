"""Two runs of one config compared file by file, each within the determinism tier that can be expected of it.

    bytes         both files recorded so, from the same parents and code, by the same versions, threads, and kind of
                  machine and device: the same bytes
    close         from the same parents, by a job that trains nothing or recorded so: values within 1e-4 relative
    statistical   else: seed means within joint 99 % intervals

The weaker of two recorded tiers counts. A file whose parents differ was made from other trained nets: of those the
first that differs is named, and what was made from them is held to the statistical tier. Collected tables are compared
in their parts. Checkpoints and pictures are compared by bytes, or not at all.
"""

from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import read_checkpoint_header
from jumpboard.artefacts.provenance import TIERS
from jumpboard.artefacts.verification import Fault, printable, read_json, stored_header
from jumpboard.audit.differences import close_difference, seeds_difference
from jumpboard.audit.manifests import artefacts_of, record_of
from jumpboard.audit.run import Run, key
from jumpboard.audit.tables import schema_of
from jumpboard.configuration.plan import Artefact
from jumpboard.errors import InputError

KIND = ("machine", "system", "device")
BYTES, CLOSE, STATISTICAL = TIERS


class Comparison:
    """`faults` are differences beyond the tier; `counts` how many files agree how; `notes` what was not compared."""

    def __init__(self, ours: Run, theirs: Run, failed: Container[str]) -> None:
        self.ours, self.theirs, self.failed = ours, theirs, failed
        self.counts: Counter[str] = Counter()
        self.notes: list[str] = []
        self.faults = list(self._faults())

    def _faults(self) -> Iterator[Fault]:
        others = {key(one): one for one in self.theirs.artefacts}
        shared = [one for one in self.ours.artefacts if key(one) in others]
        if not shared:
            raise InputError(f"{self.theirs.folders.results}: has no file in common with {self.ours.folders.results}")
        skipped: Counter[str] = Counter()
        skipped["are in one of the runs alone"] = len(self.ours.artefacts) + len(others) - 2 * len(shared)
        for one in shared:
            reason = self._skipped(one)
            if reason:
                skipped[reason] += 1
                continue
            try:
                difference = self._difference(one)
            except Exception as error:  # whatever a hostile file makes a reader raise
                difference = f"cannot be compared: {type(error).__name__}: {error}"
            if difference:
                yield Fault(str(self.ours.path(one)), f"differs from {self.theirs.folders.results}: {difference}")
        self.notes += [f"against: {count} files {reason}" for reason, count in skipped.items() if count]

    def _skipped(self, one: Artefact) -> str:
        """Why a file is not compared; empty where it is."""
        if self.ours.expected[key(one)][1] != self.theirs.expected[key(one)][1]:
            return "are of another config"
        for run in (self.ours, self.theirs):
            if one.place not in run.folders.places or run.lacks(one) or key(one) in run.damaged:
                return "are not at hand in both runs"
        return "have failed" if str(self.ours.path(one)) in self.failed else ""

    def _difference(self, one: Artefact) -> str:
        """How a file differs beyond its tier, in words; empty where it does not."""
        ours, theirs = (run.folders.listed[one.place][one.path]["sha256"] for run in (self.ours, self.theirs))
        if ours == theirs:
            self.counts["same bytes"] += 1
            return ""
        if one.path == paths.CONFIG:
            self.counts["another config"] += 1
            return ""
        if one.rule == "collect":
            self.counts["compared in parts"] += 1
            return ""
        if not one.path.endswith((".parquet", ".safetensors")):
            self.counts["pictures, not compared"] += 1
            return ""
        tier = self.tier(one)
        if one.path.endswith(".safetensors"):
            self.counts[f"checkpoints, {tier}"] += 1
            return f"tier {tier}: {self._member(one)}" if tier == BYTES else ""
        self.counts[tier] += 1
        schema = schema_of(one)
        keys = schema.keys if schema else ()
        files = (self.ours.path(one), self.theirs.path(one))
        if tier == STATISTICAL:
            found = seeds_difference(*files, keys) if "seed" in keys else ""
        else:
            found = close_difference(*files, keys, 0.0 if tier == BYTES else 1e-4)
            found = found or ("the bytes, but no value" if tier == BYTES else "")
        return f"tier {tier}: {found}" if found else ""

    def tier(self, one: Artefact) -> str:
        """The tier that a table or checkpoint file is held to."""
        ours, theirs = (stored_header(run.path(one)) for run in (self.ours, self.theirs))
        recorded = max(ours["tier"], theirs["tier"], key=TIERS.index)
        if ours["parents"] != theirs["parents"] or recorded == STATISTICAL:
            return STATISTICAL
        alike = all(ours[name] == theirs[name] for name in ("code", "threads", "versions", "device"))
        if recorded == BYTES and alike and machine_kind(self.ours, one) == machine_kind(self.theirs, one):
            return BYTES
        trains = "training" in self.ours.plan.params(one.rule, one.keys)
        return STATISTICAL if trains and recorded == BYTES else CLOSE

    def _member(self, one: Artefact) -> str:
        """The first checkpoint of a file that is another one in the other run."""
        ours, theirs = (read_checkpoint_header(run.path(one))["checkpoints"] for run in (self.ours, self.theirs))
        for name in sorted({*ours, *theirs}, key=lambda name: (ours.get(name, {}).get("step", 0), name)):
            if ours.get(name) != theirs.get(name):
                return f"checkpoint {printable(name)}"
        return "the bytes, but no tensor"


def machine_kind(run: Run, one: Artefact) -> tuple[Any, ...]:
    """What kind of machine made a file, by its job's record."""
    name = record_of(run.folders, one, artefacts_of([one, *_fellows(run, one)]))
    record = read_json(Path(run.folders.results, name)) if name else {}
    return tuple(record.get(part) for part in KIND)


def _fellows(run: Run, one: Artefact) -> list[Artefact]:
    return [other for other in run.artefacts if other.rule == one.rule and other.keys == one.keys]
