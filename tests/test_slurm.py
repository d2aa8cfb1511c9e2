"""What is asked of SLURM: the command lines that the real plugin makes of the real profile and rules.

SLURM's commands are stand-ins on PATH: `sbatch` notes its words, and runs the job or refuses it. Stages are stand-ins
too, which make their outputs. `make test-slurm` runs the same on a real SLURM.
"""

import copy
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from jumpboard.figures.registry import FIGURES
from test_workflow import INVENTORY, RUN, TINY, copy_checkout, environment, snakemake

COMMANDS = ("sbatch", "srun", "squeue", "sacct", "scancel", "sinfo", "scontrol")
CELL = "waves/resmlp/depth_2/width_4/samples_200"
TRAINED = f"{RUN}/results/train_baseline/metrics/{CELL}.parquet"
REMOTE = {"prepare_fresh", "train_baseline", "measure_gradients", "expand_depth", "certify"}
FAST = [
    "--latency-wait=1", "--slurm-status-command=squeue", "--slurm-init-seconds-before-status-checks=1",
    "--seconds-between-status-checks=1",
]  # fmt: skip

SLURM = '''
"""SLURM's commands, in one."""
import json, os, subprocess, sys
from pathlib import Path

command, words, folder = sys.argv[1], sys.argv[2:], Path(os.environ["STAND_IN_NOTES"])
if command == "sbatch":
    number = os.getpid()
    (folder / f"sbatch.{number}").write_text(json.dumps(words))
    if os.environ["SBATCH_DOES"] == "refuse":
        sys.exit("sbatch: error: refused")
    wrapped = next(word for word in words if word.startswith("--wrap=")).removeprefix("--wrap=")
    log = words[words.index("--output") + 1].replace("%j", str(number))
    given = {"SLURM_JOB_ID": str(number), **({"SLURM_GPUS": "1"} if "--gpus=1" in words else {})}
    with open(log, "wb") as output:
        done = subprocess.run(["sh", "-c", wrapped], env=os.environ | given, stdout=output, stderr=output)
    (folder / f"state.{number}").write_text("COMPLETED" if done.returncode == 0 else "FAILED")
    print(number)
elif command == "srun":
    number = os.environ["SLURM_JOB_ID"]
    (folder / f"srun.{number}").write_text(json.dumps(words))
    first = next(place for place, word in enumerate(words) if not word.startswith("-"))
    os.execvp(words[first], words[first:])
elif command == "squeue":
    for state in folder.glob("state.*"):
        print(f"{state.suffix[1:]}|{state.read_text()}")
elif command == "sinfo":
    print("PARTITION\\nshort\\nlong")
elif command == "scontrol":
    print("MinJobAge = 300 sec\\nMaxArraySize = 1001")
elif command == "sacct":
    sys.exit("sacct: error: no accounting here")
'''

STAGES = """
import os, sys
from pathlib import Path

words = sys.orig_argv
if any(word.startswith("jumpboard.stages.") for word in words):
    for output in words[words.index("--outputs") + 1:]:
        Path(output.split("=", 1)[1]).touch()
    os._exit(0)
"""


class Stand:
    """A clone with a tiny config of one cell, and a SLURM that is none."""

    def __init__(self, folder: Path) -> None:
        self.place, self.bin, self.notes = copy_checkout(folder / "a clone"), folder / "bin", folder / "notes"
        config: dict[str, Any] = copy.deepcopy(TINY)
        config["grid"] = [{**TINY["grid"][1], "product": {"depth": [2], "width": [4], "samples": [200]}}]
        config["expansions"] = [{**TINY["expansions"][0], "only": {"depth": [2]}}]
        config |= {"widenings": [], "chains": [], "fits": []}
        config["resources"] = {
            "train_baseline": {"threads": 2, "mem_mb": 2500, "runtime": 45},
            "measure_gradients": {"threads": 1, "mem_mb": 3500, "runtime": 25},
            "expand_depth": {"threads": 1, "mem_mb": 1500, "runtime": 15, "gpu": 1},
        }
        (self.place / "tiny.yaml").write_text(yaml.safe_dump(config))
        (self.place / "tiny_datasets.yaml").write_text(yaml.safe_dump(INVENTORY))
        (folder / "slurm.py").write_text(SLURM)
        (folder / "sitecustomize.py").write_text(STAGES)
        self.bin.mkdir()
        for command in COMMANDS:
            path = self.bin / command
            path.write_text(f"#!/bin/sh\nexec '{sys.executable}' -S '{folder}/slurm.py' {command} \"$@\"\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        self.settings = {
            "PATH": os.pathsep.join([str(self.bin), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join([str(self.place / "src"), str(folder)]),
            "STAND_IN_NOTES": str(self.notes),
        }

    def run(self, *options: str, does: str = "run") -> subprocess.CompletedProcess[str]:
        """Snakemake through the profile, with no notes of an earlier run."""
        shutil.rmtree(self.notes, ignore_errors=True)
        self.notes.mkdir()
        given = ["--workflow-profile", "profiles/slurm", "--configfile", "tiny.yaml", *FAST, *options]
        return snakemake(self.place, *given, SBATCH_DOES=does, **self.settings)

    def words(self, command: str) -> dict[str, list[str]]:
        """The words that a command was given for a job of each rule."""
        found = {}
        for path in self.notes.glob("sbatch.*"):
            words = json.loads(path.read_text())
            rule = re.match(r"rule_(\w+?)(_wildcards|$)", words[words.index("--comment") + 1])
            assert rule
            found[rule[1]] = json.loads(path.with_stem(command).read_text())
        return found

    def asked(self, *options: str) -> list[str]:
        """The words of the one training, which is refused."""
        done = self.run("--retries=0", *options, "--", TRAINED, does="refuse")
        assert "sbatch: error: refused" in done.stdout, done.stdout
        words = self.words("sbatch")
        assert words.keys() == {"train_baseline"}
        return words["train_baseline"]


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Stand:
    """One clone for the file; its splits are in place, so that the training can be asked for alone."""
    made = Stand(tmp_path_factory.mktemp("slurm"))
    targets = [f"{RUN}/results/prepare_dataset/splits/{name}.parquet" for name in ("base", "waves")]
    command = ["--cores", "2", "--configfile", "tiny.yaml", "--quiet", "all", "--", *targets]
    done = subprocess.run(
        ["snakemake", *command], cwd=made.place, env=environment(made.place, **made.settings), capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return made


def value(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def gpu_words(words: list[str]) -> list[str]:
    """The words with which a GPU is asked for, the job itself left out."""
    return [word for word in words if ("gpu" in word or "gres" in word) and not word.startswith("--wrap=")]


def test_training_asks_for_what_the_config_says(stand: Stand) -> None:
    """A wrong unit or a lost number ends jobs after minutes, or for want of memory, on somebody else's machine."""
    words = stand.asked()
    assert gpu_words(words) == ["--gpus=1"], "`auto` must not mean the login node"
    assert value(words, "--mem") == "2500"
    assert value(words, "-t") == "45"
    assert "--cpus-per-task=2" in words
    assert "--requeue" in words
    assert value(words, "-D") == str(stand.place)
    assert not {"-p", "--partition", "-A", "--account", "--qos"} & set(words), "nothing that was not set"


def test_gres_instead_of_gpus(stand: Stand) -> None:
    """A cluster that knows only gres refuses `--gpus`; both together ask for two (slurm plugin #52, #248)."""
    (stand.place / "two.yaml").write_text("resources: {train_baseline: {gpu: 2}}\n")
    assert gpu_words(stand.asked("--config", "gres=gpu")) == ["--gres=gpu:1"]
    settings = ["--configfile", "tiny.yaml", "two.yaml", "--config", "gres=gpu:a100"]
    assert gpu_words(stand.asked(*settings)) == ["--gres=gpu:a100:2"]


def test_training_on_cpus_asks_for_no_gpu(stand: Stand) -> None:
    """Such jobs would wait for GPUs that they never use."""
    words = stand.asked("--config", "device=cpu", "gres=gpu")
    assert gpu_words(words) == []
    assert "--ntasks=1" in words
    assert value(words, "--mem") == "2500"


def test_partition_and_account_of_the_user(stand: Stand) -> None:
    """Set on the command line they must not push out anything of the profile."""
    words = stand.asked("--default-resources", "slurm_partition=long", "--slurm-qos=night")
    assert value(words, "-p") == "long"
    assert "--qos=night" in words
    assert gpu_words(words) == ["--gpus=1"]
    assert value(words, "--mem") == "2500"


def test_only_training_measuring_and_fresh_samples_are_submitted(stand: Stand) -> None:
    """Jobs of a second would each wait in a queue; and no data set can be fetched on a node without a network."""
    done = stand.run()
    assert done.returncode == 0, done.stdout
    submitted, steps = stand.words("sbatch"), stand.words("srun")
    assert submitted.keys() == steps.keys() == REMOTE
    assert len(list(stand.notes.glob("sbatch.*"))) == 5
    for words in (submitted, steps):
        assert {rule: gpu_words(words[rule]) for rule in REMOTE} == {
            "prepare_fresh": [],
            "train_baseline": ["--gpus=1"],
            "measure_gradients": ["--gpus=1"],
            "expand_depth": ["--gpus=1"],
            "certify": ["--gpus=1"],
        }
    assert "--cpus-per-task=2" in submitted["train_baseline"]
    assert "--cpus-per-task=2" in steps["train_baseline"]
    assert "--cpus-per-task=1" in submitted["measure_gradients"]
    assert value(submitted["measure_gradients"], "--mem") == "3500"
    assert value(submitted["prepare_fresh"], "-t") == "10"
    ran = set(re.findall(r"^(?:local)?rule (\w+):", done.stdout, re.MULTILINE))
    assert ran >= REMOTE | {"resolve_config", "collect", "evaluate_claims", "write_manifest"}
    assert ran & {f"draw_{figure}" for figure in FIGURES}
    assert (stand.place / RUN / "results/manifest.json").exists()


def test_profile_repeats_the_default_one(stand: Stand) -> None:
    """`--workflow-profile` replaces the default profile; what is missing here is missing on the cluster."""
    default, slurm = (
        yaml.safe_load((stand.place / f"profiles/{name}/profile.yaml").read_text()) for name in ("default", "slurm")
    )
    local = {"resources", "__use_yte__", "__definitions__"}  # the limit on this machine's GPUs
    assert {name: slurm.get(name) for name in default.keys() - local} == {
        name: default[name] for name in default.keys() - local
    }
    assert slurm["retries"] == 3
    described = set(re.findall(r"^\| `([\w-]+)", (stand.place / "profiles/README.md").read_text(), re.MULTILINE))
    assert default.keys() - {"__use_yte__", "__definitions__"} <= described
    assert slurm.keys() <= described
