"""What the keys of an inventory entry are for, and what its schema cannot say of them.

Keys of `ROWS` determine the rows and stand in the digest of the splits. Keys of `WORDS` describe them and go to the
card alone. `path`, `files` and `mirrors` say where a copy lies or comes from: what is read there is in the splits, the
place is in no digest and no table.
"""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from jumpboard.artefacts.downloads import ALGORITHMS, checksum_of
from jumpboard.data.layouts.options import check_options
from jumpboard.data.registry import KNOWN_LAWS
from jumpboard.errors import InputError

Entry = Mapping[str, Any]

ROWS = (
    *("loader", "seed", "options", "shape", "classes", "splits", "validation_from"),
    *("normalise", "normalise_as", "package"),
)
WORDS = ("version", "source", "licence", "offline", "package")
LOCAL = "local"
DECODER = "pillow"  # the package of a copy that names none
LAW = ("loader", "seed", "options", "shape", "classes")
OF_COPIES = ("path", "files", "mirrors", "validation_from")
CONFIG_PLACES = ("paths", "downloads")


def with_package(entry: Entry) -> Entry:
    """The entry with its package: that which decodes pictures, for a copy that names none."""
    return {"package": DECODER, **entry} if entry["loader"] == LOCAL else entry


def row_params(entry: Entry) -> dict[str, Any]:
    """What determines the rows of an entry."""
    complete = with_package(entry)
    return {key: complete[key] for key in ROWS if key in complete}


def card_params(entry: Entry) -> dict[str, Any]:
    """What the card says of an entry besides its rows, with the checksums of all its files in one line, and what
    determines its law where that is known."""
    published = [f"{file['name']} {':'.join(checksum_of(file))}" for file in entry.get("files", ())]
    words = {key: with_package(entry)[key] for key in WORDS}
    law = {"law": {key: entry[key] for key in LAW}} if entry["loader"] in KNOWN_LAWS else {}
    return {**words, **law, "checksum": entry.get("checksum", "; ".join(published) or "none")}


def _path(name: str, entry: Entry, config: Mapping[str, Any]) -> tuple[str, str | None]:
    """The key that names a copy and the place it names, relative to where snakemake is started."""
    paths = config.get("paths", {})
    if name in paths:
        return f"config: paths.{name}", paths[name]
    return f"{config['datasets']}: {name}.path", entry.get("path")


def source(name: str, entry: Entry, config: Mapping[str, Any]) -> dict[str, Any]:
    """Where the rows of an entry come from: a `path`, or a `folder` and the `files` and `mirrors` to fill it, or {}.

    Raises InputError for an entry that is read from a copy and has none, and for a path that is not there.
    """
    key, path = _path(name, entry, config)
    if path is not None:
        if not Path(path).expanduser().exists():
            raise InputError(f"{key} is '{path}', which is not there; accepted: a folder or archive with a copy")
        return {"path": path}
    if "files" in entry:
        folder = f"{config.get('downloads', 'downloads')}/{name}"
        return {"folder": folder, "files": entry["files"], "mirrors": entry["mirrors"]}
    if entry["loader"] == LOCAL:
        raise InputError(
            f"config: data set '{name}' has no place; accepted: `paths: {{{name}: FOLDER}}` or `path:` of its entry"
        )
    return {}


def without_places(config: Mapping[str, Any], datasets: Mapping[str, Entry]) -> dict[str, Any]:
    """Config and inventory as they are stored: the same on every machine. Of a file of weights its name is kept."""
    nets = {
        name: {key: Path(value).name if key == "weights" else value for key, value in entry.items()}
        for name, entry in config["nets"].items()
    }
    return {
        "config": {key: value for key, value in config.items() if key not in CONFIG_PLACES} | {"nets": nets},
        "datasets": {name: {k: v for k, v in entry.items() if k != "path"} for name, entry in datasets.items()},
    }


def check_inventory(config: Mapping[str, Any], datasets: Mapping[str, Entry]) -> None:
    """Raises InputError for the first entry that contradicts itself, and for `paths` of no entry."""
    for name, entry in datasets.items():
        place = f"{config['datasets']}: {name}"
        foreign = [key for key in OF_COPIES if key in entry]
        if foreign and entry["loader"] != LOCAL:
            raise InputError(f"{place}: key '{foreign[0]}' is for loader '{LOCAL}', not '{entry['loader']}'")
        if ("files" in entry) != ("mirrors" in entry):
            raise InputError(f"{place}: has one of files and mirrors; accepted: both or neither")
        for file in entry.get("files", ()):
            if not set(ALGORITHMS) & set(file):
                raise InputError(f"{place}: file '{file['name']}' has no checksum; accepted: {', '.join(ALGORITHMS)}")
        if entry["loader"] == LOCAL:
            check_options(place, entry)
            key, path = _path(name, entry, config)
            if path is not None and not path.strip():  # else it would be the folder where snakemake is started
                raise InputError(f"{key} is '{path}'; accepted: a folder or archive, or no such key")
        _check_package(place, with_package(entry))
        _check_normalisation(place, name, datasets)
    for name in config.get("paths", {}):
        if datasets.get(name, {}).get("loader") != LOCAL:
            accepted = ", ".join(sorted(one for one, entry in datasets.items() if entry["loader"] == LOCAL)) or "none"
            raise InputError(f"config: paths: '{name}' is no data set that is read from a copy; accepted: {accepted}")


def _check_package(place: str, entry: Entry) -> None:
    if "package" not in entry:
        raise InputError(f"{place} lacks the key 'package', which only loader '{LOCAL}' can do without")
    try:
        version(entry["package"])
    except (PackageNotFoundError, ValueError):
        raise InputError(f"{place}: package is '{entry['package']}'; accepted: an installed package") from None


def _check_normalisation(place: str, name: str, datasets: Mapping[str, Entry]) -> None:
    entry = datasets[name]
    if "normalise" in entry:
        channels = entry["shape"][0] if len(entry["shape"]) > 1 else 1
        if {len(entry["normalise"][key]) for key in ("mean", "sd")} != {channels}:
            raise InputError(f"{place}: normalise has not one mean and sd for each of the {channels} channels")
        if "normalise_as" in entry:
            raise InputError(f"{place}: has both normalise and normalise_as; accepted: one of them")
    base = entry.get("normalise_as", name)
    given = datasets.get(base, {})
    if "train" not in given.get("splits", {}) and "normalise" not in given:
        raise InputError(f"{place}: normalise_as '{base}' has no training split to normalise by")
