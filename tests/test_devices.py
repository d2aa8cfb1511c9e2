"""Which GPU a job takes, how many a run hands out, and who asks for none (snakemake #281: all jobs on GPU 0).

No GPU is needed: processes take pretended devices by name, and the workflow counts pretended device files.
"""

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
import yaml
import yte

from jumpboard.artefacts.code_digest import reached
from jumpboard.configuration import devices
from jumpboard.configuration.devices import gpu_count, gpus_asked, take_gres
from jumpboard.errors import InputError
from jumpboard.training.device import choose_device
from jumpboard.training.slots import device_names, slot_folder, take_slot
from test_workflow import INVENTORY, ROOT, TINY, copy_checkout, environment, snakemake

HOLDER = """
import logging, sys
from jumpboard.training.slots import take_slot
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
print(take_slot(sys.argv[1:]), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of locks of this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return slot_folder()


@contextmanager
def holder(folder: Path, *names: str) -> Iterator[subprocess.Popen[str]]:
    """A process that takes one of the named devices, says which, and keeps it."""
    command = [sys.executable, "-c", HOLDER, *names]
    settings = environment(ROOT, TMPDIR=str(folder.parent))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    """The next line of a process."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_four_processes_take_four_devices_and_a_fifth_waits(folder: Path, number: int) -> None:
    """Two trainings on one GPU while three stand idle; or, after a kill, a GPU that nobody may have any more."""
    names = ("0", "1", "GPU-8932f937", "MIG-GPU-1/2/0")
    with (
        holder(folder, *names) as first, holder(folder, *names) as second, holder(folder, *names) as third,
        holder(folder, *names) as fourth,
    ):  # fmt: skip
        taken = [int(said(process)) for process in (first, second, third, fourth)]
        assert sorted(taken) == [0, 1, 2, 3]
        with holder(folder, *names) as fifth:
            assert (
                said(fifth) == "GPU 0, 1, GPU-8932f937, MIG-GPU-1/2/0: taken by other processes; waiting for one to end"
            )
            third.send_signal(number)
            assert int(said(fifth)) == taken[2]


def test_same_device_under_another_number(folder: Path) -> None:
    """One process sees devices 2 and 3, another 3 alone: they must agree on who has the third."""
    with holder(folder, "2", "3") as one, holder(folder, "3") as other:
        assert said(one) == "0"
        assert said(other) == "0"
        with holder(folder, "2", "3") as late:
            assert said(late).startswith("GPU 2, 3: taken")


def test_lock_folder_that_others_could_lead_elsewhere_is_refused(folder: Path, tmp_path: Path) -> None:
    """In a temporary folder that all share, another user could make this one's job write to a file of their choice."""
    target = tmp_path / "target"
    target.mkdir()
    folder.symlink_to(target)
    with pytest.raises(InputError, match="no folder for the locks"):
        take_slot(["0"])
    assert not list(target.iterdir())
    folder.unlink()
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(InputError, match="others can write there"):
        take_slot(["0"])
    folder.chmod(0o700)
    (folder / "gpu-0.lock").symlink_to(tmp_path / "made")
    with pytest.raises(InputError, match=r"gpu-0\.lock"):
        take_slot(["0"])
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("visible", "count", "names"),
    [
        (None, 2, ["0", "1"]),
        ("3,1", 2, ["3", "1"]),
        (" GPU-a , GPU-b", 2, ["GPU-a", "GPU-b"]),
        ("2,3,-1,0", 2, ["2", "3"]),
        ("2", 2, ["0", "1"]),  # CUDA counts otherwise: its numbers are all there is
    ],
)
def test_devices_are_named_as_cuda_visible_devices_says(visible: str | None, count: int, names: list[str]) -> None:
    """A scheduler's second GPU is every job's `cuda:0`; locked by that number, all its jobs would wait for one."""
    assert device_names(count, {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}) == names


def pretend_cuda(monkeypatch: pytest.MonkeyPatch, count: int, visible: str | None = None) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)


def test_chosen_device_is_the_first_free_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What a stage trains on, and what its log says it trained on."""
    caplog.set_level(logging.INFO)
    pretend_cuda(monkeypatch, 4, "4,5,6,7")
    with holder(folder, "4") as other:
        assert said(other) == "0"
        assert choose_device("cuda:2") == torch.device("cuda", 2)
        assert choose_device("auto") == torch.device("cuda", 1)
        assert choose_device("cuda") == torch.device("cuda", 3)
    assert caplog.messages == ["device: cuda:2, GPU 6", "device: cuda:1, GPU 5", "device: cuda:3, GPU 7"]
    assert sorted(path.name for path in folder.iterdir()) == [f"gpu-{name}.lock" for name in (4, 5, 6, 7)]


def test_nothing_is_locked_without_a_choice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of a scheduler may all see their GPU as number 0: a lock on that would run one job per node at a time."""
    pretend_cuda(monkeypatch, 1)
    assert choose_device("auto") == choose_device("cuda:0") == torch.device("cuda", 0)
    assert choose_device("cpu") == torch.device("cpu")
    pretend_cuda(monkeypatch, 0)
    assert choose_device("auto") == torch.device("cpu")
    for name in ("cuda", "cuda:1"):
        with pytest.raises(InputError, match=f"device is '{name}', but this machine has 0 CUDA devices"):
            choose_device(name)
    assert not folder.exists()


def test_only_training_and_measuring_can_take_a_gpu() -> None:
    """A collecting job that reserves a GPU keeps a training waiting."""
    stages = sorted(path.stem for path in (ROOT / "src/jumpboard/stages").glob("[a-z]*.py"))
    users = {stage for stage in stages if "jumpboard.training.slots" in reached([f"jumpboard.stages.{stage}"])}
    expanding = {"expand_depth", "expand_width", "expand_chain", "certify"}
    assert users == {"train_baseline", "measure_gradients", *expanding}


def test_gpus_are_counted_as_cuda_would_see_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted too high, jobs hold cores and wait for locks; too low, GPUs stand idle."""
    for name in ("nvidia0", "nvidia1", "nvidia12", "nvidiactl", "nvidia-uvm", "nvidia-caps", "null"):
        (tmp_path / name).touch()
    monkeypatch.setattr(devices, "DEVICE_FILES", tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpu_count() == 3
    for visible, count in (("1", 1), ("0,12", 2), ("", 0), ("-1", 0), ("0,1,2,3,4", 3), ("GPU-a,GPU-b", 2)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert gpu_count() == count, visible


@pytest.mark.parametrize(
    ("device", "here", "elsewhere", "asked"),
    [
        ("cpu", 4, False, 0), ("cpu", 4, True, 0), ("cuda", 0, False, 1), ("cuda:1", 0, True, 1),
        ("auto", 0, False, 0), ("auto", 2, False, 1), ("auto", 0, True, 1),
    ],
)  # fmt: skip
def test_gpus_asked(device: str, here: int, elsewhere: bool, asked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` on a login node without a GPU would send every training to a node's CPU."""
    monkeypatch.setattr(devices, "gpu_count", lambda: here)
    assert gpus_asked(device, 1, elsewhere) == asked


def test_gres_is_taken_out_of_the_config() -> None:
    """Left in it, the same run on two clusters would have two configs, and neither could take over the other's."""
    config = {"gres": "gpu:a100", "device": "auto"}
    assert take_gres(config) == "gpu:a100"
    assert config == {"device": "auto"}
    assert take_gres(config) is None
    for name in ("1gpu", "gpu 1", "--gres=gpu", "gpu:a:1", "'gpu'", ""):
        with pytest.raises(InputError, match="gres is"):
            take_gres({"gres": name})


# The limit of the default profile

STAND_IN = '''
"""In the place of every stage: makes the outputs, and notes when trainings ran. Pretends device files."""
import json, os, sys, time
from pathlib import Path

words = sys.orig_argv
stage = next((word for word in words if word.startswith("jumpboard.stages.")), None)
if stage:
    notes, started = Path(os.environ["NOTES"]), time.monotonic()
    if stage.endswith("train_baseline"):
        (notes / f"{os.getpid()}.started").touch()
        while len(list(notes.glob("*.started"))) < int(os.environ["TOGETHER"]) and time.monotonic() < started + 30:
            time.sleep(0.02)
        time.sleep(0.5)  # in which one too many would begin
        (notes / f"{os.getpid()}.json").write_text(json.dumps([started, time.monotonic()]))
    for output in words[words.index("--outputs") + 1:]:
        Path(output.split("=", 1)[1]).touch()
    os._exit(0)

import jumpboard.configuration.devices as devices

devices.DEVICE_FILES = Path(os.environ["PRETENDED"])
'''


@pytest.mark.parametrize(("gpus", "limit"), [(0, 1), (1, 1), (4, 4)])
def test_limit_of_the_default_profile(gpus: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Snakemake takes a limit of 0 for none at all."""
    monkeypatch.setattr(devices, "gpu_count", lambda: gpus)
    with open(ROOT / "profiles/default/profile.yaml") as profile:
        assert yte.process_yaml(profile, require_use_yte=True)["resources"] == {"gpu": limit}


@pytest.mark.parametrize(("gpus", "together"), [(0, 4), (2, 2)])
def test_as_many_trainings_at_once_as_there_are_gpus(gpus: int, together: int, tmp_path: Path) -> None:
    """Four cores and fewer GPUs: more jobs would fight for memory or wait with a core each, fewer waste a GPU. Without
    a GPU trainings ask for none, and all cores train."""
    place, notes, pretended = copy_checkout(tmp_path / "clone"), tmp_path / "notes", tmp_path / "dev"
    for made in (notes, pretended):
        made.mkdir()
    for number in range(gpus):
        (pretended / f"nvidia{number}").touch()
    (tmp_path / "sitecustomize.py").write_text(STAND_IN)
    (place / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    (place / "tiny_datasets.yaml").write_text(yaml.safe_dump(INVENTORY))
    settings = {"NOTES": str(notes), "PRETENDED": str(pretended), "TOGETHER": str(together)}
    settings["PYTHONPATH"] = os.pathsep.join([str(place / "src"), str(tmp_path)])
    done = snakemake(place, "--cores", "4", "--configfile", "tiny.yaml", "--until", "train_baseline", **settings)
    assert done.returncode == 0, done.stdout
    runs = [json.loads(path.read_text()) for path in notes.glob("*.json")]
    assert len(runs) == 4
    assert max(sum(start <= moment < end for start, end in runs) for moment, _ in runs) == together
