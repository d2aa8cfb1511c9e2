"""A finished run as it is audited: its folders, its manifests, its plan, and what each of its files must be.

The figures are those that the config names, found from where the results lie: `<base>/results` has `<base>/figures`,
`<base>/results/released` has `<base>/figures/released`. In a copy under another name they are not at hand unless named.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jumpboard.artefacts import paths
from jumpboard.artefacts.verification import NOT_SHIPPED, read_config, read_manifest
from jumpboard.configuration.load import Configuration, resolve
from jumpboard.configuration.plan import Artefact, Plan
from jumpboard.errors import InputError

RECORDS_MANIFEST = f"{paths.RECORDS}/{paths.MANIFEST}"
WITH_HEADER = (".parquet", ".safetensors")
Axes = tuple[Any, ...]


class NotAtHandError(Exception):
    """A check needs this file, which is damaged or not shipped."""


@dataclass(frozen=True)
class Folders:
    """Where a run lies, and what its two manifests list: place -> path -> {sha256, bytes}. `figures` may be None."""

    results: Path
    figures: Path | None
    listed: Mapping[str, Mapping[str, Mapping[str, Any]]]
    records: Mapping[str, Mapping[str, Any]]

    @property
    def places(self) -> dict[str, Path]:
        """The folders that are at hand."""
        return {"results": self.results} | ({"figures": self.figures} if self.figures else {})

    @cached_property
    def not_shipped(self) -> frozenset[str]:
        """Listed results that a released run leaves out: all of those kinds, or none."""
        kinds = [name for name in self.listed.get("results", {}) if name.startswith(NOT_SHIPPED)]
        return frozenset() if any((self.results / name).exists() for name in kinds) else frozenset(kinds)


@dataclass(frozen=True)
class Run:
    """A run whose config could be read. `digests` holds the SHA-256 that each result may be known by, `damaged` the
    files (by place and path) that are not what the manifest lists, or that it does not list: they are not opened."""

    folders: Folders
    configuration: Configuration
    resolved: Mapping[str, Any]
    digests: Mapping[str, frozenset[str]]
    damaged: frozenset[str] = frozenset()

    @cached_property
    def plan(self) -> Plan:
        return Plan(self.configuration)

    @cached_property
    def artefacts(self) -> tuple[Artefact, ...]:
        return tuple(self.plan.artefacts())

    @cached_property
    def by_kind(self) -> dict[str, dict[Axes, str]]:
        """Paths of the results, by kind and by the values of `CELL_KEYS`, None where a file has no such key."""
        found: dict[str, dict[Axes, str]] = {}
        for one in (one for one in self.artefacts if one.place == "results"):
            found.setdefault(kind_of(one.path), {})[tuple(one.keys.get(name) for name in paths.CELL_KEYS)] = one.path
        return found

    @cached_property
    def expected(self) -> dict[str, tuple[str, str]]:
        """Code and config digest that each artefact's header must hold, by place and path."""
        return {key(one): self.plan.digests(one.rule, one.keys) for one in self.artefacts}

    def result(self, name: str) -> Path:
        """A result that another file is held against. Raises NotAtHandError where it is damaged or not shipped."""
        if f"results/{name}" in self.damaged or name in self.folders.not_shipped:
            raise NotAtHandError(name)
        return self.folders.results / name

    def path(self, one: Artefact) -> Path:
        return self.folders.places[one.place] / one.path

    def at_hand(self, suffixes: tuple[str, ...] = WITH_HEADER) -> Iterator[Artefact]:
        """The artefacts with one of the suffixes, but for those that are not shipped or whose folder is not there."""
        for one in self.artefacts:
            if one.path.endswith(suffixes) and one.place in self.folders.places and not self.lacks(one):
                yield one

    def lacks(self, one: Artefact) -> bool:
        """Not shipped."""
        return one.place == "results" and one.path in self.folders.not_shipped


def kind_of(path: str) -> str:
    """The kind of a file: rule and table, or what else the first two parts of its path are."""
    return "/".join(path.split("/")[:2])


def key(one: Artefact) -> str:
    """An artefact's name among those of both places."""
    return f"{one.place}/{one.path}"


def open_folders(results: Path, figures: Path | None) -> Folders:
    """Read the manifests of a run. Raises InputError where there is no run, or its manifests are not whole."""
    if not results.is_dir():
        raise InputError(f"{results}: no such folder; accepted: the results folder of a finished run")
    if figures is not None and not figures.is_dir():
        raise InputError(f"{figures}: no such folder; accepted: the figures folder of the run")
    records = read_manifest(results / RECORDS_MANIFEST)
    return Folders(results, figures, read_manifest(results / paths.MANIFEST), records.get("results", {}))


def open_configuration(results: Path) -> tuple[Configuration, dict[str, Any]]:
    """The run's own config, held against the schemas. Raises InputError where it does not fit them."""
    resolved = read_config(results / paths.CONFIG)
    try:
        return resolve(resolved["config"], resolved["datasets"], resolved["claims"]), resolved
    except InputError as error:  # a run of another version, perhaps
        raise InputError(f"{results / paths.CONFIG}: does not fit this version: {error}") from None
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{results / paths.CONFIG}: not the resolved config of a run: {error!r}") from None


def inner_folders(folders: Folders, config: Mapping[str, Any]) -> Iterator[Path]:
    """Folders of the run that the config puts into its results or figures."""
    for place, root in folders.places.items():
        for name in ("results", "figures", "logs"):
            if name != place and Path(config[name]).is_relative_to(config[place]):
                yield root / Path(config[name]).relative_to(config[place])


def figures_beside(results: Path, config: Mapping[str, Any]) -> Path | None:
    """The figures folder that belongs to a results folder, if it can be told and is there. A stranger's config leads to
    no folder above the one that both lie in."""
    own, figures = Path(config["results"]), Path(config["figures"])
    if ".." in figures.parts or not figures.parts or figures.is_absolute() != own.is_absolute():
        return None
    place = results.absolute()
    released = (paths.RELEASED,) if place.name == paths.RELEASED else ()
    parts = place.parts[: len(place.parts) - len(released)]
    if own.parts != parts[len(parts) - len(own.parts) :]:
        return None
    found = Path(*parts[: len(parts) - len(own.parts)], *figures.parts, *released)
    return found if found.is_dir() else None
