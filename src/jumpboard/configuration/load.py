"""The resolved configuration of a run: config with its overlays, data set inventory, claims, and the grid's cells.

Overlays merge as Snakemake merges them: mappings key by key, anything else replaced.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from jumpboard.configuration.grid import Cell, cells
from jumpboard.configuration.inventory import check_inventory, without_places
from jumpboard.configuration.selection import FITS, SECTIONS, block_of, covers
from jumpboard.configuration.validation import checkout, validate
from jumpboard.errors import InputError
from jumpboard.expansion.widenable import ACCEPTED, refusal
from jumpboard.figures.registry import FIGURES
from jumpboard.nets.registry import DEPTH_STEPS, PICTURES_ONLY


@dataclass(frozen=True)
class Configuration:
    """A validated run: the config as given, the inventory entries and claims it names, and its cells in run order."""

    config: Mapping[str, Any]
    datasets: Mapping[str, Any]
    claims: Mapping[str, Any]
    cells: tuple[Cell, ...]

    def as_json(self) -> dict[str, Any]:
        """What `results/config.json` holds: no place of a machine, and of the inventory what the run uses."""
        used = {cell.dataset for cell in self.cells}
        used |= {self.datasets[name].get("normalise_as", name) for name in used}
        datasets = {name: entry for name, entry in self.datasets.items() if name in used}
        return {**without_places(self.config, datasets), "claims": dict(self.claims)}


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file that holds one mapping. Raises InputError naming the file and, if it can, the line."""
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a name with a null byte
        raise InputError(f"{path}: cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: holds {type(value).__name__}; accepted: a mapping of keys")
    return value


def merged(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """`overlay` on `base`: mappings key by key, lists and scalars replaced; an empty mapping changes nothing."""
    result = dict(base)
    for key, value in overlay.items():
        if isinstance(value, Mapping):
            old = result.get(key, {})
            value = merged(old if isinstance(old, Mapping) else {}, value) if value else old
        result[key] = value
    return result


def _check_cell(cell: Cell, config: Mapping[str, Any], datasets: Mapping[str, Any]) -> None:
    for kind, name, known in (
        ("dataset", cell.dataset, datasets),
        ("arch", cell.arch, config["nets"]),
        ("training", cell.training, config["trainings"]),
    ):
        if name not in known:
            raise InputError(f"config: grid: {kind} '{name}' is not defined; accepted: {', '.join(sorted(known))}")
    family = config["nets"][cell.arch]["family"]
    step = DEPTH_STEPS.get(family, 1)
    if cell.depth % step:
        raise InputError(f"config: grid: depth {cell.depth} of {cell.arch}; accepted for {family}: multiples of {step}")
    shape = datasets[cell.dataset]["shape"]
    if family in PICTURES_ONLY and len(shape) != 3:
        raise InputError(
            f"config: grid: {cell.arch} is for pictures, but samples of {cell.dataset} have shape {shape}; accepted: a"
            " data set of pictures"
        )
    _check_recipe(cell.training, cell.dataset, config, datasets)
    net = config["nets"][cell.arch]
    if "caps" in config["trainings"][cell.training] and (family != "resmlp" or net.get("gain") or net.get("bias")):
        raise InputError(
            f"config: trainings.{cell.training}.caps does not cover {cell.arch}; accepted: resmlp without gain and bias"
        )
    _check_batch(cell.training, cell, config)
    available = datasets[cell.dataset]["splits"].get("train", 0)
    if cell.samples > available:
        raise InputError(
            f"config: grid: samples {cell.samples} of {cell.dataset}; accepted: 1 to {available}, its training split"
        )


def _check_recipe(training: str, dataset: str, config: Mapping[str, Any], datasets: Mapping[str, Any]) -> None:
    recipe, shape = config["trainings"][training], datasets[dataset]["shape"]
    pictures_only = [key for key in ("augmentation", "channels_last") if recipe.get(key)]
    if pictures_only and len(shape) != 3:
        raise InputError(
            f"config: trainings.{training}.{pictures_only[0]} is for pictures, but samples of {dataset} have"
            f" shape {shape}; accepted: a recipe without it"
        )


def _check_caps(section: str, place: str, training: str, own: Sequence[Cell], config: Mapping[str, Any]) -> None:
    """Other caps would change the old net before its training begins."""
    caps = config["trainings"][training].get("caps")
    if caps is not None and section == "widenings":
        raise InputError(
            f"{place}.training is '{training}', which has caps; accepted: one without: they change weights"
        )
    for before in sorted({cell.training for cell in own}):
        given = config["trainings"][before].get("caps")
        if caps != given:
            raise InputError(
                f"{place}.training is '{training}' with caps {caps}; accepted: those of trainings.{before}, {given}"
            )


def _check_batch(training: str, cell: Cell, config: Mapping[str, Any]) -> None:
    """One sample has no batch statistics: torch refuses it in the middle of the job."""
    net, recipe = config["nets"][cell.arch], config["trainings"][training]
    normalised = net["family"] == "resnet" and net.get("norm", "batch") == "batch"
    if normalised and recipe["steps"] and min(recipe["batch"], cell.samples) == 1:
        raise InputError(
            f"config: grid: {cell.arch} sees batches of 1 sample on {cell.samples} samples of {cell.dataset} by"
            f" trainings.{training}; accepted: 2 or more, or another norm than batch"
        )


def _check_blocks(section: str, config: Mapping[str, Any], datasets: Mapping[str, Any], grid: Sequence[Cell]) -> None:
    """A block of a net that is not trained, or of a checkpoint that is not kept, would silently do nothing."""
    for index, block in enumerate(config.get(section, ())):
        place = f"config: {section}[{index}]"
        own = _cells_of_net(place, block, grid)
        if not any(covers(block, cell) for cell in own):
            raise InputError(f"{place}.only is {block['only']}, which no cell of the grid has")
        if section == "certificates":
            _check_certified(place, block, own, config)
            continue
        if "fresh" in block["splits"] and "fresh" not in datasets[block["dataset"]]:
            raise InputError(
                f"{place}.splits has fresh, which {block['dataset']} has none of; accepted: train, validation, test"
            )
        steps = block.get("steps")
        if steps is not None and steps["lowest"] >= steps["highest"]:
            raise InputError(
                f"{place}.steps.lowest is {steps['lowest']}; accepted: less than highest, {steps['highest']}"
            )
        if "training" in block and block["training"] not in config["trainings"]:
            known = ", ".join(sorted(config["trainings"]))
            raise InputError(f"{place}.training is '{block['training']}', which is not defined; accepted: {known}")
        if "training" in block:
            _check_recipe(block["training"], block["dataset"], config, datasets)
            _check_caps(section, place, block["training"], own, config)
            for cell in (one for one in own if covers(block, one)):
                _check_batch(block["training"], cell, config)
        net = config["nets"][block["arch"]]
        reason = refusal(net["family"], net) if section == "widenings" else None
        if reason is not None:
            raise InputError(f"{place} is of {block['arch']}, which cannot be widened: {reason}; accepted: {ACCEPTED}")
        _check_checkpoints(place, block, own, config)


def _check_fits(config: Mapping[str, Any], grid: Sequence[Cell]) -> None:
    """Likewise of blocks of fits, which name nets and no cells."""
    for index, block in enumerate(config.get(FITS, ())):
        place = f"config: {FITS}[{index}]"
        _check_checkpoints(place, block, _cells_of_net(place, block, grid), config)


def _cells_of_net(place: str, block: Mapping[str, Any], grid: Sequence[Cell]) -> list[Cell]:
    own = [cell for cell in grid if (cell.dataset, cell.arch) == (block["dataset"], block["arch"])]
    if not own:
        net = f"{block['dataset']}/{block['arch']}"
        known = ", ".join(sorted({f"{cell.dataset}/{cell.arch}" for cell in grid}))
        raise InputError(f"{place} is of {net}, which the grid lacks; accepted: {known}")
    return own


def _check_checkpoints(place: str, block: Mapping[str, Any], own: Sequence[Cell], config: Mapping[str, Any]) -> None:
    for training in {cell.training for cell in own}:
        kept = kept_checkpoints(config["trainings"][training])
        asked = block["checkpoints"] if "checkpoints" in block else [block["reference"]]
        unknown = [name for name in asked if name not in kept]
        if unknown:
            accepted = f"those of trainings.{training}: {', '.join(kept)}"
            raise InputError(f"{place} has checkpoint '{unknown[0]}'; accepted: {accepted}")


def _check_certified(place: str, block: Mapping[str, Any], own: Sequence[Cell], config: Mapping[str, Any]) -> None:
    """Certificates read the nets that an expansion keeps."""
    for cell in own:
        expansion = block_of("expand_depth", cell, config)
        if covers(block, cell) and not (expansion and expansion["keep_nets"]):
            sizes = f"depth {cell.depth}, width {cell.width}, samples {cell.samples}"
            raise InputError(
                f"{place} has {sizes}, which keeps no nets; accepted: cells of `expansions` with keep_nets"
            )


def kept_checkpoints(recipe: Mapping[str, Any]) -> list[str]:
    """Names of the checkpoints that a training recipe keeps, if the run gets so far."""
    asked = recipe.get("checkpoints", {})
    levels = [f"loss_{level:g}" for level in asked.get("losses", ())]
    return ["init", *(f"step_{step}" for step in asked.get("steps", ())), *levels, "best_validation", "final"]


def resolve(config: Mapping[str, Any], datasets: Mapping[str, Any], claims: Mapping[str, Any]) -> Configuration:
    """Validate and expand. Raises InputError for the first thing that is wrong."""
    validate(config, "config", "config")
    validate(datasets, "datasets", config["datasets"])
    validate(claims, "claims", config["claims"])
    check_inventory(config, datasets)
    for claim, entry in claims.items():
        unknown = [figure for figure in entry["figures"] if figure not in FIGURES]
        if unknown:
            accepted = f"figures of a net: {', '.join(FIGURES)}"
            raise InputError(f"{config['claims']}: {claim}.figures has '{unknown[0]}'; accepted: {accepted}")
    grid = cells(config["grid"])
    if Path(config["results"]).absolute() == Path(config["figures"]).absolute():
        raise InputError(f"config: results and figures are both '{config['results']}'; accepted: a folder for each")
    for cell in grid:
        _check_cell(cell, config, datasets)
    for name, recipe in config["trainings"].items():
        late = [step for step in recipe.get("checkpoints", {}).get("steps", ()) if step > recipe["steps"]]
        if late:
            last = recipe["steps"]
            accepted = f"1 to {last}, its steps" if last else "none, as it has 0 steps"
            raise InputError(f"config: trainings.{name}.checkpoints.steps has {late[0]}; accepted: {accepted}")
    for section in SECTIONS.values():
        _check_blocks(section, config, datasets, grid)
    _check_fits(config, grid)
    return Configuration(config, datasets, claims, grid)


def load(config: Mapping[str, Any]) -> Configuration:
    """The configuration of a merged config mapping; its inventory and ledger are read relative to the checkout."""
    validate(config, "config", "config")
    inventory, ledger = (read_yaml(checkout() / config[name]) for name in ("datasets", "claims"))
    return resolve(config, inventory, ledger)


def load_files(paths: Sequence[Path]) -> Configuration:
    """The configuration of a config file and its overlays, outside Snakemake."""
    config: dict[str, Any] = {}
    for path in paths:
        config = merged(config, read_yaml(path))
    return load(config)
