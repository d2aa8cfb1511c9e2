"""A SLURM cluster of one node on this machine, without accounting and with pretended GPUs, for as long as it is used.

Daemons run as children of this process, all their files lie in a scratch folder, and /etc/slurm holds links to the
configuration only meanwhile: commands inside jobs look nowhere else. Wants root, Debian's slurm-wlm and munge.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

SYSTEM = Path("/etc/slurm")
GPUS = {"gpu": ["/dev/null", "/dev/zero"]}  # two devices that everybody has, in the place of two GPUs
CONFIGURATION = """\
ClusterName=local
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={scratch}/munge.socket
StateSaveLocation={scratch}/state
SlurmdSpoolDir={scratch}/spool
SlurmctldPidFile={scratch}/slurmctld.pid
SlurmdPidFile={scratch}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
KillWait=5
SchedulerParameters=sched_interval=1,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=16000 Gres=gpu:{gpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def obstacle() -> str:
    """Why no cluster can be started here, or nothing."""
    if not shutil.which("apt-get"):
        return "apt-get is not here to install SLURM"
    if os.geteuid() != 0:
        return "only root can start SLURM's daemons"
    if any(os.path.lexists(SYSTEM / name) for name in ("slurm.conf", "gres.conf")):
        return f"{SYSTEM} holds the configuration of another cluster"
    return ""


def install() -> None:
    """Debian's packages, where they are missing."""
    if not all(map(shutil.which, ("sbatch", "slurmctld", "slurmd", "munged"))):
        settings: dict[str, Any] = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "capture_output": True}
        for command in ("update", "install -y --no-install-recommends slurm-wlm munge"):
            subprocess.run(["apt-get", *command.split()], check=True, **settings)


class Cluster:
    """Use as a context: inside, sbatch, squeue and scancel work."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self._daemons: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Cluster":
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _start(self) -> None:
        for name in ("state", "spool"):
            (self.scratch / name).mkdir()
        host = socket.gethostname().split(".")[0]
        devices = [f"Name={name} File={path}\n" for name, paths in GPUS.items() for path in paths]
        text = CONFIGURATION.format(host=host, scratch=self.scratch, cores=os.cpu_count(), gpus=len(devices))
        (self.scratch / "slurm.conf").write_text(text)
        (self.scratch / "gres.conf").write_text("".join(devices))
        key = self.scratch / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        SYSTEM.mkdir(exist_ok=True)
        for name in ("slurm.conf", "gres.conf"):
            (SYSTEM / name).symlink_to(self.scratch / name)
        files = [f"--{name}-file={self.scratch}/munge.{name}" for name in ("key", "log", "pid", "seed")]
        self._daemon("munged", "--foreground", "--force", f"--socket={self.scratch}/munge.socket", *files)
        self._wait("munge", "--no-input", f"--socket={self.scratch}/munge.socket")
        self._daemon("slurmctld", "-D")
        self._daemon("slurmd", "-D")
        self._wait("srun", "--immediate=1", "true")

    def _daemon(self, *command: str) -> None:
        with open(self.scratch / f"{command[0]}.out", "ab") as output:
            self._daemons.append(subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True))

    def _wait(self, *command: str) -> None:
        """Until a command succeeds; raises RuntimeError where it has not within half a minute."""
        until = time.monotonic() + 30
        while subprocess.run(command, capture_output=True).returncode != 0:
            if time.monotonic() > until or any(daemon.poll() is not None for daemon in self._daemons):
                said = "".join(path.read_text(errors="replace")[-2000:] for path in self.scratch.glob("*.out"))
                raise RuntimeError(f"the cluster did not start:\n{said}")
            time.sleep(0.2)

    def _stop(self) -> None:
        """Jobs, daemons and links go, in this order, whatever fails and whoever asks again to stop."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        try:
            if len(self._daemons) == 3:
                self._stop_jobs()
        finally:
            for daemon in reversed(self._daemons):
                daemon.terminate()
                try:
                    daemon.wait(20)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
            for name in ("slurm.conf", "gres.conf"):
                if (SYSTEM / name).is_symlink() and (SYSTEM / name).readlink().parent == self.scratch:
                    (SYSTEM / name).unlink()

    def _stop_jobs(self) -> None:
        """Cancel all jobs and wait for their ends: they would outlive the daemons."""
        settings: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 30}
        subprocess.run(["scancel", "--user=root"], **settings)
        until = time.monotonic() + 30
        while subprocess.run(["squeue", "--noheader"], **settings).stdout and time.monotonic() < until:
            time.sleep(0.2)
