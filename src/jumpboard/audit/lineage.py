"""Where each file comes from: the provenance in its header against the run's config, code and other files.

    code      the same for all files that the same modules make
    config    the digest of the parameters that the run's config gives to the job
    parents   exactly the files that the job reads, each with the SHA-256 of the file that is there

`READS` names the kinds of files that a rule reads, a kind being the first two parts of a path; of a kind it reads all
files that agree with the job in every key that both have. Of a rule that is not in `READS` the kinds are those that its
header names. Files from outside the run (weights) are known by digest alone.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jumpboard.artefacts import paths
from jumpboard.artefacts.provenance import TIERS
from jumpboard.artefacts.verification import Fault, stored_header
from jumpboard.audit.run import WITH_HEADER, Axes, Run, key, kind_of
from jumpboard.configuration.plan import COLLECTED, Artefact, table_place
from jumpboard.configuration.selection import SECTIONS
from jumpboard.errors import InputError
from jumpboard.figures.registry import figure_entry
from jumpboard.stages.evaluate_claims import TABLES

SPLITS, FRESH, CARD = "prepare_dataset/splits", "prepare_fresh/rows", "describe_dataset/card"
TRAINED, EXPANDED = "checkpoints/train_baseline", "checkpoints/expand_depth"


def source_kind(table: str) -> str:
    """The kind of the files that figures and claims read a table from."""
    return kind_of(table_place(table).replace("{table}", table))


READS: dict[str, tuple[str, ...]] = {
    "prepare_dataset": (),
    "describe_dataset": (SPLITS,),
    "prepare_fresh": (SPLITS,),
    "train_baseline": (SPLITS,),
    **dict.fromkeys(SECTIONS, (SPLITS, TRAINED)),
    "certify": (SPLITS, TRAINED, CARD, EXPANDED),
    "fit_power_law": (source_kind("metrics"), source_kind("chain"), CARD),
    "evaluate_claims": (paths.CONFIG, *(source_kind(schema.name) for schema, _ in TABLES)),
}
FACTS = {"schema": str, "code": str, "config": str, "parents": dict, "seeds": list, "device": str, "versions": dict}
OUTSIDE = "weights"


def read_provenance(path: Path) -> dict[str, Any]:
    """The header of a table or checkpoint file. Raises InputError where it lacks a fact of provenance."""
    header = stored_header(path)
    wrong = [name for name, kind in FACTS.items() if not isinstance(header.get(name), kind)]
    wrong += [] if header.get("tier") in TIERS else ["tier"]
    wrong += [] if isinstance(header.get("threads"), int) and header["threads"] >= 1 else ["threads"]
    wrong += [] if type(header.get("version")) is int else ["version"]
    wrong += (
        [] if "parents" in wrong or all(isinstance(one, str) for one in header["parents"].values()) else ["parents"]
    )
    if wrong:
        raise InputError(f"{path}: '{wrong[0]}' in its header is {header.get(wrong[0])!r}")
    return header


def parents_of(run: Run, one: Artefact, named: Mapping[str, str]) -> set[str]:
    """Paths of the results that the job of `one` reads; `named` are those that its header names."""
    keys, kinds = dict(one.keys), set(READS.get(one.rule, map(kind_of, named)))
    match one.rule:
        case "prepare_dataset":
            base = run.configuration.datasets[keys["dataset"]].get("normalise_as")
            keys, kinds = {"dataset": base}, {SPLITS} if base else set()
        case "collect":
            kinds = {f"{COLLECTED[keys['table']]}/{keys['table']}"}
        case "draw_figure":
            kinds = {source_kind(figure_entry(keys["figure"]).table)}
        case rule if rule in SECTIONS and "fresh" in run.plan.asked(rule, run.plan.cell(keys)):
            kinds |= {FRESH}
    return {path for kind in kinds for path in _agreeing(run.by_kind.get(kind, {}), keys)}


def _agreeing(files: Mapping[Axes, str], keys: Mapping[str, Any]) -> list[str]:
    """Of the files of one kind, by the values of `CELL_KEYS` that they have, those that agree with a job's keys."""
    wanted = tuple(keys.get(name) for name in paths.CELL_KEYS)
    if wanted in files:
        return [files[wanted]]
    return [
        path
        for axes, path in files.items()
        if all(one is None or other is None or one == other for one, other in zip(axes, wanted, strict=True))
    ]


def is_outside(run: Run, one: Artefact, parent: str) -> bool:
    """A parent that lies outside the run and is named by the config: the file of weights that a net begins with."""
    weights = run.plan.weights(one.keys) if "arch" in one.keys else []
    return one.rule == "train_baseline" and Path(parent).name in {Path(name).name for name in weights}


def header_fault(run: Run, one: Artefact) -> str:
    """What is wrong with a file's provenance; empty where all of it is right."""
    path = run.path(one)
    header = read_provenance(path)
    wanted = run.expected[key(one)][1]
    if header["config"] != wanted:
        others = [name for name, (_, config) in run.expected.items() if config == header["config"]]
        of = next((name for name in others if kind_of(name) == kind_of(key(one))), None)
        return (
            f"made with other parameters than the config gives: it is {of}"
            if of
            else (
                f"made with other parameters than the config gives: digest {header['config'][:12]}, not {wanted[:12]}"
            )
        )
    if "samples" in one.keys and header["seeds"] != list(run.plan.cell(one.keys).seeds):
        return f"made for the seeds {header['seeds']}, not {list(run.plan.cell(one.keys).seeds)}"
    inside = {name: digest for name, digest in header["parents"].items() if not is_outside(run, one, name)}
    wanted_parents = parents_of(run, one, inside)
    for name in sorted(wanted_parents ^ set(inside)):
        return (
            f"names the parent {name}, which is not its own" if name in inside else f"does not name its parent {name}"
        )
    for name, digest in inside.items():
        accepted = run.digests.get(name, frozenset())
        if digest not in accepted:
            there = " or ".join(one[:12] for one in sorted(accepted)) or "none"
            return f"made from another {name}: digest {digest[:12]}, there is {there}"
    return ""


def outside_parents(run: Run, failed: Mapping[str, str]) -> list[str]:
    """Files from outside the run that headers name, which nothing here can verify."""
    found = set()
    for one in run.at_hand((".safetensors",)):
        if run.plan.weights(one.keys) and str(run.path(one)) not in failed:
            found |= {name for name in stored_header(run.path(one))["parents"] if is_outside(run, one, name)}
    return [f"{name}: outside the run, known by digest alone" for name in sorted(found)]


def code_faults(run: Run, failed: Mapping[str, str]) -> tuple[list[Fault], list[str]]:
    """Files made by other code than their fellows; and what was made by other code than that of this installation.

    Fellows are files that one code would give one digest.
    """
    groups: dict[tuple[str, str], dict[str, list[Artefact]]] = defaultdict(lambda: defaultdict(list))
    for one in run.at_hand(WITH_HEADER):
        if str(run.path(one)) not in failed:
            groups[one.rule, run.expected[key(one)][0]][stored_header(run.path(one))["code"]].append(one)
    faults, other = [], []
    for (rule, wanted), found in groups.items():
        usual = wanted if wanted in found else max(found, key=lambda code: len(found[code]))
        if usual != wanted:
            other.append(f"code of {rule}: {len(found[usual])} files were made by other code than is installed here")
        faults += [
            Fault(str(run.path(one)), f"made by other code than its fellows: digest {code[:12]}, theirs {usual[:12]}")
            for code, files in found.items()
            for one in files
            if code != usual
        ]
    return faults, sorted(other)
