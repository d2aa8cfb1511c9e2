"""What every stage does the same way: its command line, its provenance, its record, its one-line errors.

    python -m jumpboard.stages.<rule> --root DIR --params JSON --code DIGEST --threads N
                                      --inputs NAME=PATH ... --outputs NAME=PATH ... [--source JSON]

A stage is a function of one `Job`. When it returns, a record (wall time, peak memory, device, host: all that may differ
between equal runs) is written under `<root>/records/`, beside no output and read by no rule. The stages that run after
the records are listed leave none: it would stand in no list.
"""

import json
import logging
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from jumpboard.artefacts.arguments import OneLineParser
from jumpboard.artefacts.files import replacing, sha256_of
from jumpboard.artefacts.paths import CELL_KEYS, RECORDS
from jumpboard.artefacts.provenance import Provenance, config_digest
from jumpboard.errors import InputError


@dataclass
class Job:
    """One run of a stage. `device`, `tier` and `seeds` may be changed by the stage before it asks for `provenance`.

    `source` says where data from outside the run lie, and enters no header.
    """

    stage: str
    root: Path
    params: Any
    code: str
    threads: int
    inputs: Mapping[str, Path]
    outputs: Mapping[str, Path]
    source: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    tier: str = "bytes"
    seeds: tuple[int, ...] = ()
    packages: tuple[str, ...] = ("jumpboard", "numpy", "pyarrow")
    _parents: dict[str, str] = field(default_factory=dict)

    def parents(self) -> dict[str, str]:
        """SHA-256 of every input, by its path from the root; of one elsewhere by `<name>/<file name>`, so that nothing
        depends on where on a machine it lies."""
        if not self._parents:
            root = self.root.absolute()
            for name, path in self.inputs.items():
                place = path.absolute()
                below = place.relative_to(root) if place.is_relative_to(root) else Path(name, path.name)
                self._parents[below.as_posix()] = sha256_of(path)
        return self._parents

    def provenance(self) -> Provenance:
        """The header facts of this job's outputs."""
        return Provenance(
            code=self.code,
            config=config_digest(self.params),
            parents=self.parents(),
            seeds=self.seeds,
            tier=self.tier,
            threads=self.threads,
            device=self.device,
            versions={package: installed_version(package) for package in self.packages},
            cell={name: self.params[name] for name in CELL_KEYS} if set(CELL_KEYS) <= set(self.params) else None,
        )


def installed_version(package: str) -> str:
    """The version of an installed package. Raises InputError for one that is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        raise InputError(f"package '{package}' is not installed; accepted: the name of an installed package") from None


def _pairs(option: str, values: list[str]) -> dict[str, Path]:
    for value in values:
        if not all(value.partition("=")):
            raise InputError(f"{option} has '{value}'; accepted: NAME=PATH")
    return {name: Path(path) for name, _, path in (value.partition("=") for value in values)}


def parse(stage: str, arguments: list[str]) -> Job:
    """The job of a stage's command line. Raises InputError for less than one thread, and for what is no NAME=PATH."""
    parser = OneLineParser(prog=f"python -m jumpboard.stages.{stage}")
    parser.add_argument("--root", type=Path, required=True, help="the run's results folder")
    parser.add_argument("--params", type=json.loads, required=True, help="the stage's parameters, one JSON value")
    parser.add_argument("--code", required=True, help="digest of the code that this stage depends on")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--inputs", nargs="*", default=[], metavar="NAME=PATH")
    parser.add_argument("--outputs", nargs="+", required=True, metavar="NAME=PATH")
    parser.add_argument("--source", type=json.loads, default={}, help="where data from outside the run lie, JSON")
    options = parser.parse_args(arguments)
    if options.threads < 1:
        raise InputError(f"--threads is {options.threads}; accepted: 1 or more")
    return Job(
        stage,
        options.root,
        options.params,
        options.code,
        options.threads,
        _pairs("--inputs", options.inputs),
        _pairs("--outputs", options.outputs),
        options.source,
    )


def json_text(value: Any) -> str:
    """Sorted, indented JSON: the one text that is written for a value."""
    return json.dumps(value, sort_keys=True, indent=1, allow_nan=False) + "\n"


def write_json(path: Path, value: Any) -> None:
    """The JSON text of a value, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json_text(value), encoding="utf-8")


def _write_record(job: Job, started: float) -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024
    output = next(iter(job.outputs.values()))
    place = output.resolve()
    root = job.root.resolve()
    own = output.parts[
        -len(job.params) :
    ]  # outside lie figures: <figure>/<dataset>/<arch>, or <figure> with no other key
    name = place.relative_to(root) if place.is_relative_to(root) else Path(job.stage, *own)
    record = {
        "stage": job.stage,
        "outputs": sorted(path.name for path in job.outputs.values()),
        "started": round(started, 3),
        "wall_seconds": round(time.time() - started, 3),
        "cpu_seconds": round(time.process_time(), 3),
        "peak_memory_bytes": usage.ru_maxrss * unit,
        "threads": job.threads,
        "device": job.device,
        "tier": job.tier,
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    write_json(job.root / RECORDS / name.with_suffix(".json"), record)


def run_stage(stage: str, body: Callable[[Job], None], recorded: bool = True) -> None:
    """Run `body` on the command line's job. Bad input ends in one line on standard error and status 2."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    started = time.time()
    try:
        job = parse(stage, sys.argv[1:])
        body(job)
        if recorded:
            _write_record(job, started)
    except InputError as error:
        sys.exit(_bad_input(str(error)))
    except OSError as error:
        sys.exit(_bad_input(f"{error.filename or stage}: {error.strerror}"))
    except (MemoryError, RuntimeError) as error:
        if not _out_of_memory(error):
            raise
        reason = str(error).partition("\n")[0] or "no reason given"
        sys.exit(_bad_input(f"out of memory: {reason}; accepted: a smaller net, fewer samples, seeds or jobs at once"))


def _out_of_memory(error: Exception) -> bool:
    """Whether NumPy or torch could not have what it asked for; torch says so of a CPU in words alone."""
    text = str(error)
    return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text


def _bad_input(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 2
