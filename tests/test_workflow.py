"""The pipeline as its user meets it: what is run again and what is not, copied results, two runs at once, bad input.

One tiny run of every rule is made once, in a copy of the checkout; each test works on a copy of that copy, edits to the
source included. Its folders have a space in their names on purpose.
"""

import ast
import copy
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import yaml

from jumpboard.artefacts import paths
from jumpboard.artefacts.code_digest import reached
from jumpboard.artefacts.tables import read_header
from jumpboard.claims.registry import MODULES as CLAIM_MODULES
from jumpboard.configuration.load import load, load_files, merged, read_yaml
from jumpboard.configuration.plan import COLLECTED, Plan
from jumpboard.figures.registry import FIGURES, RUN_FIGURES, figure_entry

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
RUN = "runs/tiny run"
SHORT = {"steps": 6, "evaluate_every": 3, "state_every": 4, "checkpoints": {"steps": [2], "losses": []}}
GENERATED = {
    "loader": "mnist1d",
    "shape": [40],
    "classes": 10,
    "splits": {"train": 300, "validation": 100, "test": 100},
}
ORIGIN = {"package": "mnist1d", "version": "1", "source": "this test", "licence": "none", "offline": True}
TINY = {
    **{name: f"{RUN}/{name}" for name in ("results", "figures", "logs")},
    "datasets": "tiny_datasets.yaml",
    "nets": {"resnet_bn": {"stem_stride": 1}},
    "trainings": {
        **{name: copy.deepcopy(SHORT) for name in ("resmlp", "resnet")},
        "expansion_resmlp": {"steps": 2, "evaluate_every": 2, "state_every": 1},
    },
    "grid": [
        {
            "dataset": "digits", "arch": "resnet_bn", "training": "resnet", "seeds": [0, 1],
            "product": {"depth": [3], "width": [2], "samples": [100, 200]},
        },
        {
            "dataset": "waves", "arch": "resmlp", "training": "resmlp", "seeds": [0, 1],
            "product": {"depth": [1, 2], "width": [4], "samples": [200]},
        },
    ],
    "measurements": [
        {
            "dataset": "waves", "arch": "resmlp", "only": {"depth": [2]}, "checkpoints": ["init", "final"],
            "splits": {"test": 60, "fresh": 60}, "blocks": 3, "pool": 20, "permutations": 1, "heat_maps": [0.5],
        },
    ],
    "expansions": [
        {
            "dataset": "waves", "arch": "resmlp", "only": {"depth": [2]}, "reference": "final", "scratch": [1],
            "training": "resmlp", "splits": {"train": 60, "test": 60, "fresh": 60},
            "steps": {"lowest": 0.01, "highest": 0.1, "count": 2}, "keep_nets": True,
        },
    ],
    "certificates": [
        {"dataset": "waves", "arch": "resmlp", "only": {"depth": [2]}, "losses": ["brier"], "delta": 0.05},
    ],
    "widenings": [
        {
            "dataset": "waves", "arch": "resmlp", "only": {"depth": [2]}, "reference": "final", "training": "resmlp",
            "splits": {"test": 60}, "factor": 2,
        },
    ],
    "chains": [
        {
            "dataset": "waves", "arch": "resmlp", "only": {"depth": [2]}, "reference": "best_validation",
            "training": "resmlp", "splits": {"train": 200, "test": 60, "fresh": 60},
            "steps": {"lowest": 0.01, "highest": 1, "count": 3}, "site": 0.5, "length": 2,
        },
    ],
    "fits": [
        {"dataset": "waves", "arch": "resmlp", "checkpoints": ["final"], "resamples": 20, "permutations": 2},
    ],
}  # fmt: skip
INVENTORY = {
    "digits": {
        **ORIGIN, "loader": "digits", "seed": 1, "shape": [1, 8, 8], "classes": 10, "package": "scikit-learn",
        "splits": {"train": 1200, "validation": 200, "test": 397},
    },
    "base": {**GENERATED, **ORIGIN, "seed": 1},
    "waves": {**GENERATED, **ORIGIN, "seed": 2, "normalise_as": "base", "fresh": {"seed": 3, "samples": 60}},
}  # fmt: skip
END = {"evaluate_claims", *(f"draw_{figure}" for figure in RUN_FIGURES), "write_manifest"}

OBSERVER = '''
"""Notes at the end of every Python process what it was and how many threads torch had."""
import atexit, json, os, sys, time

started = time.time()

def note():
    torch = sys.modules.get("torch")
    text = {"program": sys.argv[0], "started": started, "ended": time.time(),
            "torch": torch.get_num_threads() if torch else None, "omp": os.environ.get("OMP_NUM_THREADS")}
    with open(os.path.join(os.environ["OBSERVED"], f"{os.getpid()}.json"), "w") as handle:
        json.dump(text, handle)

if "OBSERVED" in os.environ:
    atexit.register(note)
'''


def copy_checkout(place: Path) -> Path:
    """All that a clone of this checkout has, with what is not committed yet, and nothing that git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:
        names = [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    else:  # an unpacked archive: no git, and nothing in it that is not the project's
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()]
        made = ("results/", "figures/", "runs/", "logs/", "downloads/")
        names = [name for name in names if not name.startswith((".", *made)) and "__pycache__" not in name]
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place / name)
    return place


def environment(place: Path, **more: str) -> dict[str, str]:
    """This process's environment, with the package of another checkout and without thread counts."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "MKL_", "PYTEST_"))}
    return {**kept, "PYTHONPATH": str(place / "src"), **more}


def snakemake(place: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Snakemake in a copy of the checkout, on the copy's package; standard error goes into `stdout`."""
    command = [str(BIN / "snakemake"), *arguments]
    settings: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.run(command, cwd=place, env=environment(place, **more), timeout=600, **settings)


def tiny(place: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return snakemake(place, *arguments, "--configfile", "tiny.yaml", **more)


def run_all(place: Path, **more: str) -> None:
    done = tiny(place, "--cores", "2", **more)
    assert done.returncode == 0, done.stdout


def jobs_in(text: str) -> set[str]:
    """The jobs that a dry run lists, as rule/wildcard/..., but for `all`."""
    found = set()
    for rule, lines in re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)+)", text, re.MULTILINE):
        wildcards = re.search(r"^    wildcards: (.*)$", lines, re.MULTILINE)
        values = [pair.split("=")[1] for pair in wildcards[1].split(", ")] if wildcards else []
        found.add("/".join([rule, *values]))
    return found - {"all"}


def jobs_of(plan: Plan) -> dict[str, Mapping[str, Any]]:
    """The jobs that make the files of a run, named as above, with their keys."""
    found = {}
    for one in plan.artefacts():
        keys = dict(one.keys)
        rule = f"draw_{keys.pop('figure')}" if one.rule == "draw_figure" else one.rule
        found["/".join([rule, *map(str, keys.values())])] = one.keys
    return found


def planned(place: Path, *arguments: str) -> set[str]:
    """What Snakemake would run now."""
    done = tiny(place, "-n", *arguments)
    assert done.returncode == 0, done.stdout
    jobs = jobs_in(done.stdout)
    assert bool(jobs) != ("Nothing to be done" in done.stdout), done.stdout
    return jobs


def files_of(place: Path) -> dict[str, str]:
    """SHA-256 of every file of the run but its logs, by path from the run's folder."""
    run = place / RUN
    found = [path for name in ("results", "figures") for path in (run / name).rglob("*") if path.is_file()]
    return {path.relative_to(run).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def times_of(place: Path) -> dict[str, int]:
    return {path.as_posix(): path.stat().st_mtime_ns for path in (place / RUN).rglob("*") if path.is_file()}


def change_a_number(path: Path) -> None:
    """Raise the first number in a module by one."""
    source = path.read_text(encoding="utf-8")
    numbers = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    node = next(one for one in numbers if type(one.value) in (int, float))
    lines = source.encode().splitlines(keepends=True)
    line = lines[node.lineno - 1]
    lines[node.lineno - 1] = line[: node.col_offset] + repr(node.value + 1).encode() + line[node.end_col_offset :]
    path.write_bytes(b"".join(lines))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path}: {old!r}"
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone that has never run, with the tiny config in it."""
    place = copy_checkout(tmp_path_factory.mktemp("pristine"))
    (place / "tiny.yaml").write_text(yaml.safe_dump(TINY), encoding="utf-8")
    (place / "tiny_datasets.yaml").write_text(yaml.safe_dump(INVENTORY), encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def plan(pristine: Path) -> Plan:
    """The plan of the tiny run."""
    config = merged(read_yaml(pristine / "config/config.yaml"), TINY)
    return Plan(load(config | {"datasets": str(pristine / "tiny_datasets.yaml")}))


@pytest.fixture(scope="module")
def jobs(plan: Plan) -> dict[str, Mapping[str, Any]]:
    return jobs_of(plan)


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the processes of the finished run left their notes."""
    return tmp_path_factory.mktemp("observed")


def observing(place: Path, notes: Path) -> dict[str, str]:
    """What to add to the environment for processes to be observed."""
    (notes / "sitecustomize.py").write_text(OBSERVER, encoding="utf-8")
    return {"OBSERVED": str(notes), "PYTHONPATH": os.pathsep.join([str(place / "src"), str(notes)])}


@pytest.fixture(scope="module")
def finished(pristine: Path, observed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with one full run in it. Tests must not change it."""
    place = tmp_path_factory.mktemp("finished") / "checkout"
    shutil.copytree(pristine, place)
    run_all(place, **observing(place, observed))
    return place


@pytest.fixture
def working(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished run with everything, Snakemake's records included."""
    return Path(shutil.copytree(finished, tmp_path / "copy"))


@pytest.fixture
def moved(pristine: Path, finished: Path, tmp_path: Path) -> Path:
    """A fresh clone into which results and figures were copied: new times, no records of Snakemake."""
    place = Path(shutil.copytree(pristine, tmp_path / "moved"))
    for name in ("results", "figures"):
        shutil.copytree(finished / RUN / name, place / RUN / name, copy_function=shutil.copyfile)
    return place


# What is run, and what is run again


def test_dry_run_of_a_fresh_clone_lists_every_figure_and_table(pristine: Path) -> None:
    """Tracked results would make a clone look finished: "Nothing to be done", and not one number made here."""
    done = snakemake(pristine, "-n")
    assert done.returncode == 0, done.stdout
    listed = jobs_in(done.stdout)
    default = Plan(load_files([pristine / "config" / "config.yaml"]))
    assert listed == {*jobs_of(default), "write_manifest"}
    assert {f"draw_{figure}" for figure in FIGURES | RUN_FIGURES} <= {job.split("/")[0] for job in listed}
    assert {f"train_baseline/{'/'.join(map(str, cell.key))}" for cell in default.configuration.cells} <= listed


def test_finished_run_has_nothing_to_do(finished: Path) -> None:
    """The second `snakemake` must say so, or nobody will trust the first."""
    assert planned(finished) == set()


def test_touching_and_reformatting_rerun_nothing(working: Path) -> None:
    """A checkout, a formatter or a comment must not retrain a net (snakemake #1694, #3456; showyourwork #341)."""
    options = ["--isolated", "--config", "line-length=70", "--config", "format.quote-style='single'"]
    subprocess.run([BIN / "ruff", "format", "-q", *options, "src"], cwd=working, check=True)
    for path in (working / "src").rglob("*.py"):
        if path.stat().st_size:
            path.write_text(f"# a comment\n\n{path.read_text(encoding='utf-8')}# and another\n", encoding="utf-8")
    edit(working / "tiny.yaml", "figures:", "# a comment\nfigures:")
    generator, now = random.Random(0), time.time()
    for path in working.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            moment = now - generator.uniform(0, 1e6)
            os.utime(path, (moment, moment))
    assert planned(working) == set()


def test_white_space_in_a_rule_reruns_nothing(working: Path) -> None:
    """The text of a shell line is no part of a result."""
    edit(working / "workflow" / "rules" / "training.smk", '" --outputs curves', '"   --outputs  curves')
    edit(working / "workflow" / "rules" / "training.smk", "rule collect:", "\n# a comment\nrule collect:")
    assert planned(working) == set()


def test_deleted_table_is_made_again_and_is_the_same(working: Path, jobs: dict[str, Mapping[str, Any]]) -> None:
    """A lost intermediate file must not go unseen behind finished figures."""
    before = files_of(working)
    table = working / RUN / "results/train_baseline/metrics/waves/resmlp/depth_2/width_4/samples_200.parquet"
    table.unlink()
    below = {job for job, keys in jobs.items() if keys.get("arch") == "resmlp" and keys.get("depth", 2) == 2}
    assert planned(working) == below | END
    done = snakemake(working, "--cores", "1", "--configfile", "tiny.yaml", "--", str(table.relative_to(working)))
    assert done.returncode == 0, done.stdout
    after = files_of(working)
    assert before.keys() == after.keys()
    differing = {name for name in before if before[name] != after[name]}
    assert differing == {"results/records/train_baseline/curves/waves/resmlp/depth_2/width_4/samples_200.json"}
    assert planned(working) == set(), "the same content must not rerun what was made of it"


def test_edit_to_a_figure_reruns_that_figure(working: Path, jobs: dict[str, Mapping[str, Any]]) -> None:
    """A colour change must cost seconds."""
    change_a_number(working / "src/jumpboard/figures/learning_curves.py")
    drawn = {job for job, keys in jobs.items() if keys.get("figure") == "learning_curves"}
    assert planned(working) == drawn | {"write_manifest"}
    assert len(drawn) == 2


def test_edit_to_a_net_reruns_the_cells_of_that_net(working: Path, jobs: dict[str, Mapping[str, Any]]) -> None:
    """Snakemake #412: a helper package's edit left old results standing. Nor may the other net be trained again."""
    change_a_number(working / "src/jumpboard/nets/resnet.py")
    assert planned(working) == {job for job, keys in jobs.items() if keys.get("arch") == "resnet_bn"} | END


def test_edit_to_a_claims_rule_reruns_the_verdicts(working: Path, jobs: dict[str, Mapping[str, Any]]) -> None:
    """A verdict by yesterday's rule must not stand beside today's."""
    change_a_number(working / "src/jumpboard/claims/rebound.py")
    users = {name for name, entry in FIGURES.items() if CLAIM_MODULES["rebound"] in reached([entry.module])}
    assert planned(working) == {job for job, keys in jobs.items() if keys.get("figure") in users} | END


def test_changed_recipe_reruns_the_cells_trained_by_it(working: Path, jobs: dict[str, Mapping[str, Any]]) -> None:
    """One number in the config, one training."""
    config = yaml.safe_load((working / "tiny.yaml").read_text())
    config["trainings"]["resnet"]["steps"] = 7
    (working / "tiny.yaml").write_text(yaml.safe_dump(config))
    now = planned(working)
    cells = {job: keys["arch"] for job, keys in jobs.items() if "depth" in keys}
    assert now & cells.keys() == {job for job, arch in cells.items() if arch == "resnet_bn"}
    assert {"resolve_config"} | END <= now
    assert not [job for job in now if job.startswith("prepare")]


def test_edit_to_the_measuring_reruns_no_training(working: Path, jobs: dict[str, Mapping[str, Any]]) -> None:
    """Symptom of snakemake #956, mended: one line of a measuring module, exactly its stage and those below."""
    change_a_number(working / "src/jumpboard/measure/records.py")
    measured = {job for job in jobs if job.startswith("measure_gradients")}
    tables = {table for table, rule in COLLECTED.items() if rule == "measure_gradients"}
    collected = {job for job, keys in jobs.items() if keys.get("table") in tables}
    drawn = {job for job, keys in jobs.items() if "figure" in keys and figure_entry(keys["figure"]).table in tables}
    now = planned(working)
    assert now | END == measured | collected | drawn | END
    assert len(measured) == 1


def test_further_cell_is_the_only_one_trained(working: Path) -> None:
    """A grid grows cell by cell; what it had must stay."""
    config = yaml.safe_load((working / "tiny.yaml").read_text())
    config["grid"][1]["product"]["depth"] = [1, 2, 3]
    (working / "tiny.yaml").write_text(yaml.safe_dump(config))
    trained = {job for job in planned(working) if job.startswith("train_baseline")}
    assert trained == {"train_baseline/waves/resmlp/3/4/200"}


# The run's files


def test_manifests_list_every_file(finished: Path) -> None:
    """A file that no manifest lists can be swapped unseen."""
    results = finished / RUN / "results"
    found, outside = files_of(finished), (paths.RECORDS, paths.RESUME, paths.RELEASED, paths.MANIFEST)
    manifest = json.loads((results / "manifest.json").read_text())
    listed = {f"{place}/{name}": entry for place, entries in manifest.items() for name, entry in entries.items()}
    assert {name: entry["sha256"] for name, entry in listed.items()} == {
        name: digest for name, digest in found.items() if name.split("/")[1] not in outside
    }
    assert all(entry["bytes"] == (finished / RUN / name).stat().st_size for name, entry in listed.items())
    records = json.loads((results / "records/manifest.json").read_text())
    assert {f"results/{name}": entry["sha256"] for name, entry in records["results"].items()} == {
        name: digest
        for name, digest in found.items()
        if name.startswith("results/records/") or name == "results/manifest.json"
        if name != "results/records/manifest.json"
    }
    assert not (results / paths.RESUME).exists()
    assert not list((finished / RUN).rglob("*.partial"))


def test_every_job_leaves_a_record(finished: Path, plan: Plan) -> None:
    """Core-seconds and memory that the README states are sums over these; two jobs must not share one."""
    files = [path for path in (finished / RUN / "results/records").rglob("*.json") if path.name != paths.MANIFEST]
    stages = Counter(json.loads(path.read_text())["stage"] for path in files)
    made = {(one.rule, tuple(one.keys.values())) for one in plan.artefacts()}
    assert stages == Counter(rule for rule, _ in made)


def test_table_folders_open_with_pyarrow(finished: Path) -> None:
    """Readers open folders, not files; a stray file or a path that reads as a partition would stop them."""
    results = finished / RUN / "results"
    folders = {folder for folder in results.glob("*/*") if folder.is_dir() and any(folder.rglob("*.parquet"))}
    folders.add(results / "evaluate_claims")
    # splits are no tidy tables: their rows have another length in each file
    folders -= {results / "prepare_dataset/splits", results / "prepare_fresh/rows"}
    assert len(folders) >= 6
    for folder in folders:
        files = [pq.read_table(path) for path in sorted(folder.rglob("*.parquet"))]
        whole = pa.concat_tables(files)
        for opened in (pq.read_table(folder), ds.dataset(folder).to_table()):
            assert opened.schema.equals(whole.schema)
            assert opened.num_rows == whole.num_rows > 0
    assert not list((finished / RUN).rglob("*=*"))


def test_second_run_from_scratch_gives_the_same_bytes(finished: Path, pristine: Path, tmp_path: Path) -> None:
    """Matplotlib #23693: figures that differ on each run cannot be reviewed; nor can tables that hold a clock."""
    again = Path(shutil.copytree(pristine, tmp_path / "elsewhere" / "other"))
    run_all(again)
    first, second = files_of(finished), files_of(again)
    assert first.keys() == second.keys()
    differing = {name for name in first if first[name] != second[name]}
    assert {name for name in differing if not name.startswith("results/records/")} == set()
    assert {".svg", ".png", ".parquet", ".safetensors", ".json"} <= {Path(name).suffix for name in first}


def test_jobs_side_by_side_have_their_own_threads(
    finished: Path, pristine: Path, observed: Path, tmp_path: Path
) -> None:
    """Every job pinned to one thread, or each taking all cores (omnibenchmark #379; snakemake #521): read inside."""
    place = Path(shutil.copytree(pristine, tmp_path / "two"))
    (tmp_path / "notes").mkdir()
    (place / "two.yaml").write_text("resources: {train_baseline: {threads: 2}}\n")
    pattern = "train_baseline/metrics/digits/resnet_bn/depth_3/width_2/samples_{}.parquet"
    targets = [f"{RUN}/results/{pattern.format(samples)}" for samples in (100, 200)]
    options = ["--cores", "4", "--configfile", "tiny.yaml", "two.yaml"]
    patience = {"OMP_WAIT_POLICY": "PASSIVE"}  # four threads on two cores must not wait by spinning
    done = snakemake(place, *options, "--", *targets, **observing(place, tmp_path / "notes"), **patience)
    assert done.returncode == 0, done.stdout
    for checkout, notes, threads, trained in ((place, tmp_path / "notes", 2, 2), (finished, observed, 1, 4)):
        seen = [json.loads(path.read_text()) for path in notes.glob("*.json")]
        trainings = [one for one in seen if one["program"].endswith("train_baseline.py")]
        assert [(one["torch"], one["omp"]) for one in trainings] == [(threads, str(threads))] * trained
        headers = [read_header(checkout / target) for target in targets]
        assert [header["threads"] for header in headers] == [threads, threads]
        if trained == 2:
            first, second = sorted(trainings, key=lambda one: one["started"])
            assert second["started"] < first["ended"], "the two jobs did not run at the same time"


# Copied results


def adopt(place: Path) -> subprocess.CompletedProcess[str]:
    """The check of `make adopt`."""
    command = [sys.executable, "-m", "jumpboard.artefacts.adopt", "config/config.yaml", "tiny.yaml"]
    return subprocess.run(command, cwd=place, env=environment(place), capture_output=True, text=True)


def test_copied_results_are_adopted(moved: Path) -> None:
    """Results from a cluster must be usable without Snakemake's own records (nextstrain/cli #373)."""
    before = files_of(moved)
    command = ["make", "-o", ".venv/installed", f"BIN={BIN}", "adopt", "CONFIG=tiny.yaml"]
    done = subprocess.run(command, cwd=moved, env=environment(moved), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert files_of(moved) == before
    assert planned(moved) == set()


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


MANIFEST = f"{RUN}/results/manifest.json"
SPOILT = {
    "flipped byte": (
        "results/train_baseline/metrics/digits/resnet_bn/depth_3/width_2/samples_100.parquet",
        lambda place, name: _flip(place / RUN / name),
    ),
    "flipped byte in a figure": (
        "figures/joint_scaling/waves/resmlp.svg",
        lambda place, name: _flip(place / RUN / name),
    ),
    "flipped byte in a record": (
        "results/records/evaluate_claims/claims.json",
        lambda place, name: _flip(place / RUN / name),
    ),
    "missing file": (
        "figures/learning_curves/digits/resnet_bn.png",
        lambda place, name: (place / RUN / name).unlink(),
    ),
    "missing manifest": ("results/manifest.json", lambda place, name: (place / RUN / name).unlink()),
    "broken manifest": ("results/records/manifest.json", lambda place, name: (place / RUN / name).write_text("{")),
    "semantic edit": (
        "results/checkpoints/train_baseline/digits/resnet_bn/depth_3/width_2/samples_100.safetensors",
        lambda place, name: change_a_number(place / "src/jumpboard/nets/resnet.py"),
    ),
    "changed config": (
        "results/config.json",
        lambda place, name: edit(place / "tiny_datasets.yaml", "test: 397", "test: 396"),
    ),
    "further cell": (
        "results/train_baseline/curves/waves/resmlp/depth_1/width_4/samples_201.parquet",
        lambda place, name: edit(
            place / "tiny.yaml", "    - 200\n    width:\n    - 4", "    - 201\n    width:\n    - 4"
        ),
    ),
}


def test_spoilt_results_are_not_adopted(moved: Path, finished: Path, pristine: Path, tmp_path: Path) -> None:
    """Adopted, they would pass for up to date; half adopted, nobody could tell any more what they were."""
    for number, (kind, (name, spoil)) in enumerate(SPOILT.items()):
        place = Path(shutil.copytree(moved, tmp_path / str(number)))
        spoil(place, name)
        before = times_of(place)
        done = adopt(place)
        assert done.returncode in (1, 2), (kind, done.stderr)
        assert f"{RUN}/{name}" in done.stderr, kind
        assert "Traceback" not in done.stderr, kind
        assert times_of(place) == before, kind


# Bad input


def error_line(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that says what is wrong."""
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stdout, done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
    assert done.stdout.rstrip().endswith(line)
    return line


@pytest.fixture
def clone(pristine: Path, tmp_path: Path) -> Iterator[Path]:
    """A clone that must still be as it was at the end of the test."""
    place = Path(shutil.copytree(pristine, tmp_path / "clone"))

    def files() -> list[Path]:
        return sorted(path for path in place.rglob("*") if not {".snakemake", "__pycache__"} & set(path.parts))

    before = files()
    yield place
    assert files() == before


def test_package_of_another_checkout_is_refused(clone: Path) -> None:
    """Else an edit here would be run there, or not at all, and the digest would be that of neither."""
    done = tiny(clone, "-n", PYTHONPATH=str(ROOT / "src"))
    assert error_line(done).startswith(f"error: jumpboard is imported from {ROOT}, not from {clone}")


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        ("results=tiny.yaml", "results is 'tiny.yaml', which cannot be written"),
        ("figures=/dev/null/figures", "figures is '/dev/null/figures', which cannot be written"),
        ("dephts=3", "key 'dephts' is not known; nearest: 'nets'"),
    ],
)
def test_bad_settings_end_in_one_line(clone: Path, setting: str, part: str) -> None:
    """Snakemake's own validation prints thirty lines; the one that helps must be the last and the only one."""
    assert part in error_line(tiny(clone, "--cores", "1", "--config", setting))


def test_work_in_another_directory_is_refused(clone: Path, tmp_path: Path) -> None:
    """Paths of config, inventory and README begin in the checkout: elsewhere a key would be said to be missing."""
    done = snakemake(clone, "-n", "--directory", str(tmp_path / "elsewhere"))
    assert error_line(done).startswith(f"error: snakemake works in {tmp_path / 'elsewhere'}, not in {clone}; accepted")


def test_failed_stage_shows_its_one_line(pristine: Path, tmp_path: Path) -> None:
    """A mistake that only the library can see must reach the person at the keyboard, not lie in a log."""
    place = Path(shutil.copytree(pristine, tmp_path / "clone"))
    edit(place / "tiny_datasets.yaml", "train: 1200", "train: 1201")
    target = f"{RUN}/results/prepare_dataset/splits/digits.parquet"
    done = snakemake(place, "--cores", "1", "--configfile", "tiny.yaml", "--", target)
    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
    assert "1798" in line
    assert "Traceback" not in done.stdout
    assert not [path for path in (place / RUN / "results").rglob("*") if path.is_file()]


def test_two_runs_in_one_folder(pristine: Path, tmp_path: Path) -> None:
    """The second stops at Snakemake's lock; after a kill, unlocking is all that is needed (lightcone-cli #214)."""
    place = Path(shutil.copytree(pristine, tmp_path / "clone"))
    command = [str(BIN / "snakemake"), "--cores", "2", "--configfile", "tiny.yaml"]
    settings: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    first = subprocess.Popen(command, cwd=place, env=environment(place), **settings)
    try:
        until, locks = time.monotonic() + 60, place / ".snakemake" / "locks"
        while not (locks.exists() and list(locks.iterdir())) and time.monotonic() < until:
            time.sleep(0.05)
        second = tiny(place, "--cores", "1")
        assert first.poll() is None, "the first run ended too early to test anything"
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert second.returncode == 1
    assert "LockException" in second.stdout
    assert jobs_in(second.stdout) == set()
    target = f"{RUN}/results/config.json"
    assert tiny(place, "--unlock").returncode == 0
    assert snakemake(place, *command[1:], "--", target).returncode == 0
    assert (place / target).exists()
