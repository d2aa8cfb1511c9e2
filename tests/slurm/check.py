"""The smoke config on a real SLURM of one node, through profiles/slurm, held against a local run: `make test-slurm`.

While the cluster runs, one training is killed by SIGKILL, and one is cancelled, which ends a job as its wall limit
does: SIGTERM, a few seconds, SIGKILL. Both must be run again by themselves and go on from their saved states, and at
the end all tables, checkpoints and figures must have the bytes of the local run.

Where SLURM cannot be installed or started, one line says why, with status 0. Neither daemons nor configuration are left
behind, however this ends; the Debian packages stay. Takes about ten minutes on two cores.
"""

import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))

from cluster import Cluster, install, obstacle

from jumpboard.artefacts import paths
from test_workflow import BIN, copy_checkout, environment

RUN = Path("runs/smoke")
LONGER = {"trainings": {"resnet": {"steps": 400}}}  # time enough to be killed in
# what this cluster asks for beside the profile: it has no accounting, is small, and its jobs take seconds
HERE = [
    "--jobs=2", "--latency-wait=5", "--slurm-status-command=squeue",
    "--slurm-init-seconds-before-status-checks=1", "--seconds-between-status-checks=1",
]  # fmt: skip


@contextmanager
def running(place: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Snakemake on the smoke config in a copy of the checkout; it must succeed, and is stopped if the block is left."""
    command = [str(BIN / "snakemake"), *options, "--configfile", "config/smoke.yaml", "longer.yaml"]
    settings: dict[str, Any] = {"cwd": place, "env": environment(place), "start_new_session": True}
    with open(place / "said", "wb") as said:
        run = subprocess.Popen(command, stdout=said, stderr=said, **settings)
    try:
        yield run
        if run.wait() != 0:
            raise SystemExit(f"the run failed:\n{(place / 'said').read_text(errors='replace')[-6000:]}")
    finally:
        if run.poll() is None:
            run.send_signal(signal.SIGINT)  # at which Snakemake cancels its jobs
            try:
                run.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()


def training_process(cell: str) -> int | None:
    """The process that trains a cell."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if words[1:3] == ["-m", "jumpboard.stages.train_baseline"] and any(f"/{cell}." in word for word in words):
            return int(command.parent.name)
    return None


def kill(cell: str) -> bool:
    """SIGKILL for the training; False if it had ended."""
    process = training_process(cell)
    try:
        subprocess.run(["kill", "-KILL", str(process)], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        return False
    return True


def cancel(cell: str) -> bool:
    """The end that a wall limit makes of a job; False if it had ended."""
    listed = subprocess.run(["squeue", "--noheader", "--format=%i %k"], capture_output=True, text=True).stdout
    keys = "_".join(re.sub(r"(depth|width|samples)_", "", cell).split("/"))
    jobs = [line.split()[0] for line in listed.splitlines() if line.endswith(f"_wildcards_{keys}")]
    return bool(jobs) and subprocess.run(["scancel", *jobs], capture_output=True).returncode == 0


def disturb(run: subprocess.Popen[bytes], place: Path) -> dict[str, str]:
    """Kill one training that has saved a state, cancel another; gives the cells and what was done to them."""
    store = place / RUN / "results" / paths.RESUME / "train_baseline"
    pending, done = {"killed": kill, "cancelled": cancel}, dict[str, str]()
    while pending and run.poll() is None:
        for state in store.rglob("*.state"):
            cell = state.parent.relative_to(store).as_posix()
            if pending and cell not in done and training_process(cell):
                name = next(iter(pending))
                if pending[name](cell):
                    done[cell] = name
                    del pending[name]
        time.sleep(0.05)
    return done


def files_of(place: Path) -> dict[str, str]:
    """SHA-256 of every table, checkpoint and figure."""
    found = [path for name in ("results", "figures") for path in (place / RUN / name).rglob("*") if path.is_file()]
    names = {path: path.relative_to(place / RUN).as_posix() for path in found}
    kept = [path for path in found if not names[path].startswith(f"results/{paths.RECORDS}/")]
    return {names[path]: hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}


def check(scratch: Path) -> None:
    local, remote = (copy_checkout(scratch / name) for name in ("local", "remote"))
    for place in (local, remote):
        (place / "longer.yaml").write_text(yaml.safe_dump(LONGER))
    begun = time.monotonic()
    with Cluster(scratch), running(remote, "--workflow-profile", "profiles/slurm", *HERE) as run:
        done = disturb(run, remote)
    minutes = (time.monotonic() - begun) / 60
    said = (remote / "said").read_text(errors="replace")
    jobs = len(re.findall("has been submitted with SLURM jobid", said))
    print(f"the cluster's run: {minutes:.1f} minutes, {jobs} jobs submitted")
    assert sorted(done.values()) == ["cancelled", "killed"], f"too fast to be disturbed: {done}"
    for cell, how in done.items():
        log = (remote / RUN / f"logs/train_baseline/{cell}.log").read_text()
        resumed = re.findall(r"going on from step (\d+)", log)
        assert resumed, f"{cell} was {how} and began anew:\n{log}"
        print(f"{cell}: {how}, went on from step {resumed[-1]}")
    with running(local, "--cores=2"):
        pass
    first, second = files_of(local), files_of(remote)
    assert first.keys() == second.keys(), sorted(first.keys() ^ second.keys())
    differing = [name for name in first if first[name] != second[name]]
    assert not differing, differing
    print(f"{len(first)} files, the bytes of a local run")


def main() -> None:
    reason = obstacle()
    if reason:
        print(f"test-slurm does not run here: {reason}")
        return

    def stop(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        install()
    except subprocess.CalledProcessError as error:
        print(f"test-slurm does not run here: {' '.join(error.cmd)} ended with status {error.returncode}")
        return
    with tempfile.TemporaryDirectory(prefix="jumpboard-slurm-") as scratch:
        Path(scratch).chmod(0o755)
        check(Path(scratch))


if __name__ == "__main__":
    main()
