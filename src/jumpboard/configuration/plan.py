"""What each rule of a run is given: its parameters, the code it depends on, and the files it leaves.

The rules ask this module, and so does whoever checks a finished run: both then speak of the same digests.
Paths are below the results folder, or for figures below the figures folder.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jumpboard.artefacts import paths
from jumpboard.artefacts.code_digest import code_digest
from jumpboard.artefacts.provenance import config_digest
from jumpboard.claims.registry import MODULES as CLAIM_MODULES
from jumpboard.configuration.grid import Cell
from jumpboard.configuration.inventory import card_params, row_params, source, without_places
from jumpboard.configuration.load import Configuration
from jumpboard.configuration.selection import RULES, SECTIONS, block_of, cells_of, fit_of
from jumpboard.data.registry import KNOWN_LAWS
from jumpboard.data.registry import MODULES as DATA_MODULES
from jumpboard.errors import InputError
from jumpboard.figures.registry import FIGURES, RUN_FIGURES, figure_entry
from jumpboard.nets.registry import MODULES as NET_MODULES
from jumpboard.schemas.registry import MODULES as SCHEMA_MODULES
from jumpboard.schemas.registry import RUN_MODULES

Keys = Mapping[str, Any]
COLLECTED = {  # table -> the rule that makes it cell by cell
    "metrics": "train_baseline",
    "curves": "train_baseline",
    "signal": "measure_gradients",
    "moments": "measure_gradients",
    "covariance": "measure_gradients",
    "correlations": "measure_gradients",
    "jumpboard": "expand_depth",
    "step_gains": "expand_depth",
    "expansion": "expand_depth",
    "widening": "expand_width",
    "chain": "expand_chain",
    "routes": "certify",
    "ladder": "certify",
}
FITTED = {  # table of the rule fit_power_law -> the rule whose cells it needs
    "fits": "train_baseline",
    "fitted": "train_baseline",
    "betas": "expand_chain",
    "fitted_chain": "expand_chain",
}
CHOOSES_CELLS = ("dataset", "arch", "only")  # of a block: which cells it covers, not what is done to them
KEEPS_CHECKPOINTS = ("train_baseline", "expand_depth", "expand_chain")
FIGURE_FILES = ("svg", "png", "parquet")


def table_place(table: str) -> str:
    """Pattern of where a table that figures and claims read lies below the results folder."""
    if table in FITTED:
        return paths.FITTED
    return paths.COLLECTED if table in COLLECTED else paths.CLAIMS


@dataclass(frozen=True)
class Artefact:
    """A file of the run: its place (`results` or `figures`), path below it, and the rule and keys that make it."""

    place: str
    path: str
    rule: str
    keys: Keys


class Plan:
    """The rules' questions, answered from one configuration."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._cells = {cell.key: cell for cell in configuration.cells}
        self._places = {key: place for place, key in enumerate(self._cells)}

    def cell(self, keys: Keys) -> Cell:
        """The cell of a job's wildcards. Raises InputError for one that the grid does not have."""
        key = (keys["dataset"], keys["arch"], int(keys["depth"]), int(keys["width"]), int(keys["samples"]))
        if key not in self._cells:
            raise InputError(f"cell {'/'.join(map(str, key))} is not in the config's grid")
        return self._cells[key]

    def experiments(self, rule: str = "train_baseline") -> tuple[tuple[str, str], ...]:
        """The pairs (dataset, arch) of the grid that a rule runs on, in run order."""
        return tuple(dict.fromkeys((cell.dataset, cell.arch) for cell in self.cells(rule)))

    def fitted(self) -> tuple[tuple[str, str], ...]:
        """The pairs (dataset, arch) whose scaling laws are fitted, in run order."""
        return tuple(one for one in self.experiments() if fit_of(*one, self.configuration.config) is not None)

    def nets_of(self, table: str) -> tuple[tuple[str, str], ...]:
        """The pairs (dataset, arch) that have a collected or fitted table, in run order."""
        return self.fitted() if table in FITTED else self.experiments(COLLECTED[table])

    def cells(self, rule: str, *experiment: str) -> tuple[Cell, ...]:
        """The cells that a rule runs on, of all experiments or of one (dataset, arch), in run order."""
        chosen = cells_of(rule, self.configuration.cells, self.configuration.config)
        return tuple(cell for cell in chosen if experiment in ((), (cell.dataset, cell.arch)))

    def datasets(self) -> tuple[str, ...]:
        """The data sets that the grid uses, and those they are normalised by."""
        entries = self.configuration.datasets
        used = dict.fromkeys(cell.dataset for cell in self.configuration.cells)
        return tuple(dict.fromkeys([*used, *(entries[name].get("normalise_as", name) for name in used)]))

    def _fresh_asked(self) -> dict[str, int]:
        """The largest number of fresh samples that a block asks for, of each data set that is asked for any."""
        asked: dict[str, int] = {}
        for rule in SECTIONS:
            for cell in self.cells(rule):
                count = self.asked(rule, cell).get("fresh", 0)
                if count:
                    asked[cell.dataset] = max(count, asked.get(cell.dataset, 0))
        return asked

    def asked(self, rule: str, cell: Cell) -> Mapping[str, int]:
        """The number of samples of each split that a rule asks for; `certify` takes what the expansion asks for."""
        asking = "expand_depth" if rule == "certify" else rule
        splits: Mapping[str, int] = (block_of(asking, cell, self.configuration.config) or {})["splits"]
        return splits

    def _with_fresh_asked(self, dataset: str) -> dict[str, Any]:
        """What determines the rows, with as many fresh samples as are asked for, and no more than the entry allows."""
        entry = self.configuration.datasets[dataset]
        params = row_params(entry)
        if "fresh" in entry:
            allowed = entry["fresh"]["samples"]
            params["fresh"] = {**entry["fresh"], "samples": min(allowed, self._fresh_asked().get(dataset, allowed))}
        return params

    def source(self, keys: Keys) -> dict[str, Any]:
        """Where `prepare_dataset` finds a data set's copy: in no digest. Raises InputError where it has no place."""
        dataset = keys["dataset"]
        return source(dataset, self.configuration.datasets[dataset], self.configuration.config)

    def weights(self, keys: Keys) -> list[str]:
        """The file of weights that a cell's net begins with, if it begins with one."""
        named = self.configuration.config["nets"][keys["arch"]].get("weights")
        return [named] if named is not None else []

    def _net(self, arch: str) -> dict[str, Any]:
        """The net's entry without its file of weights: that is an input, told by its content and not by its path."""
        entry = self.configuration.config["nets"][arch]
        return {name: value for name, value in entry.items() if name != "weights"}

    def priority(self, keys: Keys) -> int:
        """Larger for cells that are best run earlier."""
        return len(self._cells) - self._places[self.cell(keys).key]

    def _built_on(self, keys: Keys) -> dict[str, Any]:
        """Parameters of a job that builds on a cell's trained nets."""
        cell = self.cell(keys)
        return {
            **{name: value for name, value in cell.as_json().items() if name != "training"},
            "net": self._net(cell.arch),
            "device": self.configuration.config["device"],
        }

    def _told(self, rule: str, keys: Keys) -> dict[str, Any]:
        """What the config's block says is done to the cell."""
        block = block_of(rule, self.cell(keys), self.configuration.config) or {}
        return {name: value for name, value in block.items() if name not in CHOOSES_CELLS}

    def params(self, rule: str, keys: Keys) -> dict[str, Any]:
        """The parameters of one job, plain JSON; their digest is the config digest of its outputs."""
        config, datasets = self.configuration.config, self.configuration.datasets
        match rule:
            case "resolve_config":
                return {"config": without_places(config, datasets)["config"]}
            case "prepare_dataset":
                return {"dataset": keys["dataset"], **row_params(datasets[keys["dataset"]])}
            case "describe_dataset":
                return {"dataset": keys["dataset"], **card_params(datasets[keys["dataset"]])}
            case "prepare_fresh":
                return {"dataset": keys["dataset"], **self._with_fresh_asked(keys["dataset"])}
            case "train_baseline":
                cell = self.cell(keys)
                return {
                    **cell.as_json(),
                    "net": self._net(cell.arch),
                    "training": config["trainings"][cell.training],
                    "device": config["device"],
                }
            case "measure_gradients":
                return {**self._built_on(keys), "measurement": self._told(rule, keys)}
            case "expand_depth" | "expand_width" | "expand_chain":
                told = self._told(rule, keys)
                return {
                    **self._built_on(keys),
                    "baseline": config["trainings"][self.cell(keys).training],
                    "training": config["trainings"][told.pop("training")],
                    "expansion": told,
                }
            case "certify":
                expansion = self._told("expand_depth", keys)
                return {
                    **self._built_on(keys),
                    "caps": config["trainings"][expansion["training"]].get("caps"),
                    "expansion": {name: expansion[name] for name in ("reference", "splits", "steps")},
                    "certificates": self._told(rule, keys),
                }
            case "collect":
                return {**{name: keys[name] for name in ("table", "dataset", "arch")}, "rule": COLLECTED[keys["table"]]}
            case "fit_power_law":
                block = fit_of(keys["dataset"], keys["arch"], config) or {}
                told = {name: value for name, value in block.items() if name not in CHOOSES_CELLS}
                return {"dataset": keys["dataset"], "arch": keys["arch"], "fit": told}
            case "draw_figure":
                return {name: keys[name] for name in ("figure", "dataset", "arch") if name in keys}
            case "release" | "report":
                return {"figures": config["figures"]}
            case "evaluate_claims" | "write_manifest":
                return {}
        raise InputError(f"rule '{rule}' is not known")

    def code(self, rule: str, keys: Keys) -> str:
        """The digest of the code that one job's outputs depend on."""
        config, datasets = self.configuration.config, self.configuration.datasets
        named: list[str] = []
        match rule:
            case "prepare_dataset" | "prepare_fresh":
                named = [DATA_MODULES[datasets[keys["dataset"]]["loader"]]]
            case "describe_dataset" if datasets[keys["dataset"]]["loader"] in KNOWN_LAWS:
                named = [DATA_MODULES[datasets[keys["dataset"]]["loader"]]]
            case "train_baseline" | "measure_gradients" | "expand_depth" | "expand_width" | "expand_chain" | "certify":
                named = [NET_MODULES[config["nets"][keys["arch"]]["family"]]]
            case "collect":
                named = [SCHEMA_MODULES[keys["table"]]]
            case "draw_figure":
                entry = figure_entry(keys["figure"])
                named = [entry.module, (SCHEMA_MODULES | RUN_MODULES)[entry.table]]
            case "evaluate_claims":
                named = sorted({CLAIM_MODULES[claim["rule"]["kind"]] for claim in self.configuration.claims.values()})
        return code_digest(f"jumpboard.stages.{rule}", *named)

    def digests(self, rule: str, keys: Keys) -> tuple[str, str]:
        """Code and config digest that the outputs of a job carry if they are of this code and config."""
        return self.code(rule, keys), config_digest(self.params(rule, keys))

    def artefacts(self) -> Iterator[Artefact]:
        """Every file of the run that the manifest lists, in the order of the pipeline."""
        yield Artefact("results", paths.CONFIG, "resolve_config", {})
        for dataset in self.datasets():
            for rule, table in (("prepare_dataset", "splits"), ("describe_dataset", "card")):
                keys = {"dataset": dataset}
                yield Artefact("results", paths.filled(paths.dataset_table(rule, table), keys), rule, keys)
        for dataset in self._fresh_asked():
            keys = {"dataset": dataset}
            path = paths.filled(paths.dataset_table("prepare_fresh", "rows"), keys)
            yield Artefact("results", path, "prepare_fresh", keys)
        for rule in RULES:
            patterns = [paths.cell_table(rule, table) for table, maker in COLLECTED.items() if maker == rule]
            patterns += [paths.cell_checkpoints(rule)] if rule in KEEPS_CHECKPOINTS else []
            for cell in self.cells(rule):
                keys = {name: getattr(cell, name) for name in paths.CELL_KEYS}
                for pattern in patterns:
                    yield Artefact("results", paths.filled(pattern, keys), rule, keys)
        for dataset, arch in self.experiments():
            tables = [table for table, rule in COLLECTED.items() if self.cells(rule, dataset, arch)]
            for table in tables:
                keys = {"table": table, "dataset": dataset, "arch": arch}
                yield Artefact("results", paths.filled(paths.COLLECTED, keys), "collect", keys)
            if (dataset, arch) in self.fitted():
                keys = {"dataset": dataset, "arch": arch}
                for table in FITTED:
                    path = paths.filled(paths.FITTED, {"table": table, **keys})
                    yield Artefact("results", path, "fit_power_law", keys)
                tables += [table for table, rule in FITTED.items() if self.cells(rule, dataset, arch)]
            for figure in (name for name, entry in FIGURES.items() if entry.table in tables):
                keys = {"figure": figure, "dataset": dataset, "arch": arch}
                for suffix in FIGURE_FILES:
                    yield Artefact("figures", f"{paths.filled(paths.FIGURE, keys)}.{suffix}", "draw_figure", keys)
        yield Artefact("results", paths.CLAIMS, "evaluate_claims", {})
        for figure in RUN_FIGURES:
            for suffix in FIGURE_FILES:
                yield Artefact("figures", f"{figure}.{suffix}", "draw_figure", {"figure": figure})
