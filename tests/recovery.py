"""The workflow killed at random moments, and the README's recovery line after each kill.

A life is one call of snakemake. It is killed with SIGKILL some time after its first stage runs, or now and then
before: the workflow, one stage, or all of both. What it leaves behind, orphans and locks included, meets the next life.
"""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from jumpboard.artefacts import paths
from test_workflow import BIN, environment

TARGETS = ("workflow", "stage", "both")
SHARE_EARLY = 0.2


def processes_of(group: int) -> Iterator[psutil.Process]:
    """The processes of a process group."""
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, PermissionError):
            if os.getpgid(process.pid) == group:
                yield process


def stages_of(group: int) -> list[int]:
    """Process ids of the stages that run in a process group."""
    found = []
    for process in processes_of(group):
        with suppress(psutil.Error):
            if any("jumpboard.stages." in word for word in process.cmdline()[1:3]):
                found.append(process.pid)
    return sorted(found)


@dataclass
class Workflow:
    """`snakemake ARGUMENTS` in the checkout `place`, each time in a session, and so a process group, of its own.

    `run` is the folder of the run's results and figures below `place`.
    """

    place: Path
    run: str
    arguments: tuple[str, ...]
    groups: list[int] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.place / "lives.log"

    def start(self) -> "subprocess.Popen[bytes]":
        """One life; what it says is appended to the log."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [str(BIN / "snakemake"), *self.arguments],
                cwd=self.place,
                env=environment(self.place),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.groups.append(process.pid)
        return process

    def unlock(self) -> None:
        """The first half of the recovery line; the second is the next life."""
        command = [str(BIN / "snakemake"), "--unlock", *self.arguments]
        done = subprocess.run(command, cwd=self.place, env=environment(self.place), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def end(self) -> None:
        """Kill all that is left of all lives, known by the folder that it works in: numbers of groups come again."""
        for process in (one for group in self.groups for one in processes_of(group)):
            with suppress(psutil.Error):
                if Path(process.cwd()) == self.place:
                    process.kill()

    def wait_for_orphans(self) -> None:
        """Until the last stage of a killed life has ended."""
        while any(map(stages_of, self.groups)):
            time.sleep(0.05)

    def forget(self) -> None:
        """As if the run had never been."""
        shutil.rmtree(self.place / self.run)
        shutil.rmtree(self.place / ".snakemake")

    def contents(self) -> dict[str, str]:
        """SHA-256 of every file that equal runs have equal, hidden ones included."""
        root = self.place / self.run
        found = (path for name in ("results", "figures") for path in (root / name).rglob("*") if path.is_file())
        named = {path.relative_to(root).as_posix(): path for path in found}
        clocks = (f"results/{paths.RECORDS}/", f"results/{paths.MANIFEST}")
        return {
            name: hashlib.sha256(path.read_bytes()).hexdigest()
            for name, path in sorted(named.items())
            if not name.startswith(clocks)
        }


@dataclass
class Report:
    """What became of the kills: how many of each target, and what was said where a later life failed by itself."""

    kills: Counter[str] = field(default_factory=Counter)
    finished: int = 0
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        total = sum(self.kills.values())
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        return f"{total - len(self.failures)} of {total} kills survived ({kinds}); {self.finished} runs finished"


def killed(process: "subprocess.Popen[bytes]", generator: random.Random, longest: float) -> str | None:
    """Kill one life at a random moment, up to `longest` seconds after its first stage began; what was killed, or None
    where it ended before."""
    target, early = generator.choice(TARGETS), generator.random() < SHARE_EARLY
    pause, place = generator.uniform(0, longest), generator.random()
    while not early and not stages_of(process.pid) and process.poll() is None:
        time.sleep(0.05)
    try:
        process.wait(pause)
    except subprocess.TimeoutExpired:
        pass
    else:
        return None
    stages = stages_of(process.pid)
    if target == "both":
        os.killpg(process.pid, signal.SIGKILL)
    elif target == "stage" and stages:
        os.kill(stages[int(place * len(stages))], signal.SIGKILL)
    else:
        target = "workflow"
        process.kill()
    process.wait()
    return target


def survive(
    workflow: Workflow, expected: dict[str, str], kills: int, seed: int, longest: float, say: bool = False
) -> Report:
    """Kill the workflow `kills` times and let it end; a run that ends is held against `expected` and begun anew."""
    generator, report = random.Random(seed), Report()
    try:
        while True:
            left = kills - sum(report.kills.values())
            process = workflow.start()
            target = killed(process, generator, longest) if left else None
            if target is not None:
                report.kills[target] += 1
                workflow.unlock()
            elif process.wait() != 0:
                report.failures.append(_last_words(workflow, "ended with an error"))
                workflow.unlock()
                if not left:
                    return report
            else:
                workflow.wait_for_orphans()
                report.finished += 1
                found = workflow.contents()
                differing = sorted(name for name in expected.keys() | found if expected.get(name) != found.get(name))
                if differing:
                    report.failures.append(f"differs from an undisturbed run: {', '.join(differing)}")
                if not left:
                    return report
                workflow.forget()
            if say:
                print(report, flush=True)
    finally:
        workflow.end()


def _last_words(workflow: Workflow, reason: str) -> str:
    lines = workflow.log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join([reason, *lines[-30:]])
