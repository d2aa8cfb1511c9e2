"""The report's figures: each with its caption, the table it is drawn from, and the claims that it bears on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from jumpboard.artefacts.tables import read_header
from jumpboard.errors import InputError
from jumpboard.figures.registry import FIGURES, RUN_FIGURES, figure_entry, figure_module

TABLE = ".parquet"
PIXELS_PER_INCH, SHOWN_PER_INCH = 200, 125  # of the PNG; on the screen, where an inch on paper has 96


@dataclass(frozen=True)
class Picture:
    """A figure of the run. `path` lies below the figures folder, without suffix; `source` below the results folder.

    `net` is data set and arch, empty for a figure of the whole run; `claims` are ids; `width` is in pixels of a screen.
    """

    name: str
    paper: str
    path: str
    net: tuple[str, ...]
    caption: str
    source: str
    digest: str
    claims: tuple[str, ...]
    width: int

    @property
    def of_run(self) -> bool:
        return self.name in RUN_FIGURES


def pictures(
    figures: Path, listed: Iterable[str], tables: Mapping[str, Mapping[str, Any]], claims: Mapping[str, Any]
) -> list[Picture]:
    """The figures that the manifest lists, in the registry's order, which is that of reading; `tables` is its list of
    results, `claims` the ledger.

    Raises InputError for a figure that was drawn from another table than the one that is there.
    """
    plotted = [PurePosixPath(name) for name in sorted(listed) if name.endswith(TABLE)]
    order = {name: rank for rank, name in enumerate(FIGURES | RUN_FIGURES)}
    return sorted((_picture(figures, one, tables, claims) for one in plotted), key=lambda one: order[one.name])


def _picture(
    figures: Path, table: PurePosixPath, tables: Mapping[str, Mapping[str, Any]], claims: Mapping[str, Any]
) -> Picture:
    header = read_header(figures / table)
    name = header["schema"]
    ((source, digest),) = header["parents"].items()
    if tables.get(source, {}).get("sha256") != digest:
        raise InputError(f"{figures / table}: drawn from another {source} than the one in the run; draw it again")
    place = table.with_suffix("")
    net = place.parts[1:]
    shown = tuple(claim for claim, entry in claims.items() if name in entry["figures"] and _judged_on(entry, net))
    caption, paper = figure_module(name).CAPTION, figure_entry(name).paper
    return Picture(name, paper, str(place), net, caption, source, digest, shown, _width(figures / f"{place}.png"))


def _judged_on(entry: Mapping[str, Any], net: tuple[str, ...]) -> bool:
    return any((one["dataset"], one["arch"]) == net for one in entry["evaluated_on"])


def _width(png: Path) -> int:
    """From the header of the file: 8 bytes that name the format, 8 of the first chunk's head, then the width."""
    with open(png, "rb") as handle:
        pixels = int.from_bytes(handle.read(20)[16:], "big")
    return round(pixels / PIXELS_PER_INCH * SHOWN_PER_INCH)
