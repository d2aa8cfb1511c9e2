"""What a workflow does before its first rule: find this checkout, check the config, make sure it can write."""

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jumpboard.configuration.load import load
from jumpboard.configuration.plan import Plan
from jumpboard.configuration.validation import checkout
from jumpboard.errors import InputError


def check_directory(basedir: Path) -> None:
    """Raise InputError unless snakemake works in the checkout: paths of the config and of the rules begin there."""
    if Path.cwd().resolve() != basedir.resolve():
        raise InputError(
            f"snakemake works in {Path.cwd()}, not in {basedir.resolve()}; accepted: no --directory, and a start there;"
            " results, figures and logs in an overlay may lie anywhere"
        )


def _check_writable(name: str, folder: Path) -> None:
    """Raise InputError where files cannot be made at `folder`, or in the parent that it would be made in."""
    parent = folder
    try:
        while not parent.exists() and parent != parent.parent:
            if parent.is_symlink():
                raise InputError(f"config: {name} is '{folder}', of which {parent} is a link to nowhere")
            parent = parent.parent
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as error:
        raise InputError(f"config: {name} is '{folder}', which cannot be written: {error.strerror}") from None


def _check_weights(plan: Plan) -> None:
    """Raise InputError for a file of weights that the grid uses and that is not there."""
    for cell in plan.cells("train_baseline"):
        for path in plan.weights({"arch": cell.arch}):
            if not Path(path).is_file():
                raise InputError(f"config: nets.{cell.arch}.weights is '{path}': no such file")


def open_run(config: Mapping[str, Any], basedir: Path) -> Plan:
    """The plan of a merged config, for the checkout in `basedir`.

    Puts the running interpreter's folder first on PATH, so that jobs use the same installation whether or not it was
    activated. Raises InputError for a bad config, folders that cannot be written, weights that are not there, and where
    the imported package is not this checkout's, whose edits a run would then not see.
    """
    if checkout() != basedir.resolve():
        raise InputError(
            f"jumpboard is imported from {checkout()}, not from {basedir.resolve()}; accepted: `pip install -e .` there"
        )
    plan = Plan(load(config))
    for name in plan.datasets():
        plan.source({"dataset": name})  # refuses a data set without a place
    for name in ("results", "figures", "logs"):
        _check_writable(name, Path(config[name]))
    _check_weights(plan)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return plan
