"""Snakemake does not see that an imported file changed. If the code digest does not either, old results stand under new
code; if it sees too much, a comment retrains everything. Both have been reported of other pipelines."""

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from modulefinder import ModuleFinder
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from jumpboard.artefacts import code_digest as digests
from jumpboard.artefacts.code_digest import OUTSIDE, is_outside, reached, source_digest
from jumpboard.claims.registry import MODULES as CLAIMS
from jumpboard.configuration.load import load, merged, read_yaml
from jumpboard.configuration.plan import Plan
from jumpboard.data.registry import MODULES as DATA
from jumpboard.figures.registry import FIGURES, RUN_FIGURES, figure_entry
from jumpboard.nets.registry import MODULES as NETS
from jumpboard.schemas.registry import MODULES as SCHEMAS
from jumpboard.schemas.registry import RUN_MODULES as RUN_SCHEMAS
from test_workflow import INVENTORY, TINY

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "jumpboard"
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.stat().st_size)
SOURCES = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in FILES}
STAGES = sorted(path.stem for path in (PACKAGE / "stages").glob("*.py") if path.stem != "__init__")
NAMED = {
    "prepare_dataset": list(DATA.values()),
    "prepare_fresh": list(DATA.values()),
    "train_baseline": list(NETS.values()),
    "measure_gradients": list(NETS.values()),
    "expand_depth": list(NETS.values()),
    "expand_width": list(NETS.values()),
    "expand_chain": list(NETS.values()),
    "certify": list(NETS.values()),
    "collect": list(SCHEMAS.values()),
    "draw_figure": [*(entry.module for entry in (FIGURES | RUN_FIGURES).values()), *(SCHEMAS | RUN_SCHEMAS).values()],
    "evaluate_claims": list(CLAIMS.values()),
}
"""Modules that a stage loads by a name from the config, as `Plan.code` hands them to the digest."""


def module_of(name: str) -> str:
    return "jumpboard." + name.removesuffix(".py").replace("/", ".")


# Edits without a meaning


class Reworded(ast.NodeTransformer):
    """Other docstrings where there are some, and none where there may be none."""

    def visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        body = getattr(node, "body", None)
        if isinstance(body, list) and isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            if ast.get_docstring(node) is not None:
                body[0] = ast.Expr(ast.Constant("Other words."))
            else:
                body.insert(0, ast.Expr(ast.Constant("Words where there were none.")))
        return node


class Rearranged(ast.NodeTransformer):
    """Every run of imports backwards, each name in a statement of its own."""

    def visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                setattr(node, field, [one for run in self._runs(block) for one in reversed(run)])
        return node

    def _runs(self, block: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
        run: list[ast.stmt] = []
        for statement in block:
            if isinstance(statement, ast.Import):
                run += [ast.Import([alias]) for alias in statement.names]
            elif isinstance(statement, ast.ImportFrom):
                run += [ast.ImportFrom(statement.module, [alias], statement.level) for alias in statement.names]
            else:
                yield run
                yield [statement]
                run = []
        yield run


def transformed(transformer: ast.NodeTransformer) -> Callable[[str], str]:
    return lambda source: ast.unparse(ast.fix_missing_locations(transformer.visit(ast.parse(source))))


def commented(source: str) -> str:
    """A comment and an empty line after every statement's last line, comments at every depth."""
    tree = ast.parse(source)
    ends = {node.end_lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)}
    lines = source.splitlines()
    return "\n".join(
        line + ("  # seen\n\n# and alone" if number in ends else "") for number, line in enumerate(lines, 1)
    )


MEANINGLESS: dict[str, Callable[[str], str]] = {
    "printed anew by Python": transformed(ast.NodeTransformer()),
    "comments and empty lines": commented,
    "docstrings": transformed(Reworded()),
    "order of imports": transformed(Rearranged()),
    "line ends": lambda source: source.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("edit", MEANINGLESS)
def test_edits_without_meaning_leave_every_digest(edit: str) -> None:
    """A tidied comment would retrain every net (snakemake #1694)."""
    changed = {name: MEANINGLESS[edit](source) for name, source in SOURCES.items()}
    assert changed != SOURCES
    assert [name for name, source in changed.items() if source_digest(source) != source_digest(SOURCES[name])] == []


def test_another_style_of_formatting_leaves_every_digest(tmp_path: Path) -> None:
    """Nor may another line length, or the next version of the formatter, retrain anything."""
    for name, source in SOURCES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source, encoding="utf-8")
    options = [text for one in ("line-length=60", "format.quote-style='single'") for text in ("--config", one)]
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", "--isolated", *options, str(tmp_path)], check=True)
    changed = {name: (tmp_path / name).read_text(encoding="utf-8") for name in SOURCES}
    assert sum(changed[name] != SOURCES[name] for name in SOURCES) > len(SOURCES) / 2
    assert [name for name, source in changed.items() if source_digest(source) != source_digest(SOURCES[name])] == []


# Edits with a meaning

FUNCTION = """
@cache
def rate(x: float, step: int = 3, *rest, scale=2.0, **options) -> float:
    total = 0
    for part in rest:
        if part > step and x is not None:
            total += part * scale
        else:
            import math
            total = math.log(part)
    try:
        return f"{total:.2f}" or "none"
    except ValueError:
        raise
"""

EDITS = [
    ("step: int = 3", "step: int = 4"),
    ("step: int = 3", "step: int = 3.0"),
    ("step: int = 3", "step: int = True"),
    ("step: int = 3", "step: int"),
    ("step: int", "step: float"),
    ("-> float", "-> int"),
    ("scale=2.0", "scale=2.5"),
    ("scale=2.0", "scale"),
    ("*rest, scale", "*, rest, scale"),
    ("x: float, step", "x: float, /, step"),
    ("x: float, step: int = 3", "step: int, x: float = 3"),
    ("@cache\n", ""),
    ("@cache", "@lru_cache"),
    ("def rate", "def rates"),
    ("def rate", "async def rate"),
    ("total = 0", "total = 0j"),
    ("total = 0", "total = -0"),
    ("total = 0", "total: int = 0"),
    ("total = 0", "total = value = 0"),
    ("part > step", "part >= step"),
    ("> step and x", "> step or x"),
    ("is not None", "is None"),
    ("is not None", "is not False"),
    ("total += part", "total -= part"),
    ("part * scale", "part / scale"),
    ("part * scale", "scale * part"),
    ("part * scale", "part * scale + 1e-300"),
    ("part * scale", "part * -scale"),
    ("        else:\n            import math\n            total", "            import math\n            total"),
    ("import math\n", "import cmath as math\n"),
    ("math.log(", "math.log2("),
    (":.2f", ":.3f"),
    (":.2f", "!r:.2f"),
    ('f"{', '"{'),
    ('"none"', 'b"none"'),
    ('"none"', '"None"'),
    ("ValueError", "TypeError"),
    ("ValueError", "(ValueError, TypeError)"),
    ("        raise\n", "        pass\n"),
    ("    total = 0\n", ""),
    ("    total = 0\n", "    total = 0\n    global rest\n"),
]


@pytest.mark.parametrize(("old", "new"), EDITS)
def test_edits_with_a_meaning_change_the_digest(old: str, new: str) -> None:
    """The results of the old code would be shown as those of the new one (snakemake #412)."""
    assert FUNCTION.count(old) == 1
    changed = FUNCTION.replace(old, new)
    ast.parse(changed)
    assert source_digest(changed) != source_digest(FUNCTION)


@pytest.mark.parametrize("name", ["nets/resnet.py", "training/optimisers.py"])
def test_every_number_and_name_counts(name: str) -> None:
    """Not one constant of a net, an optimiser or a test may be changed behind the back of the digest."""
    tree = ast.parse(SOURCES[name])
    texts = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    before, tried = source_digest(SOURCES[name]), 0
    for node in ast.walk(tree):
        for field in ("value", "id", "attr", "arg", "name"):
            value = getattr(node, field, None)
            if id(node) in texts or not isinstance(value, int | float | str):
                continue
            setattr(node, field, f"{value}x" if isinstance(value, str) else value + 1)
            assert digests.hashlib.sha256("\n".join(digests._tokens(tree)).encode()).hexdigest() != before, ast.dump(
                node
            )
            setattr(node, field, value)
            tried += 1
    assert tried > 100


@settings(max_examples=40, deadline=None)
@given(order=st.permutations(range(4)))
def test_the_order_of_statements_counts(order: list[int]) -> None:
    """Only imports commute."""
    statements = ["a = b", "b = a", "f(a)", "del b"]
    same = source_digest("\n".join(statements)) == source_digest("\n".join(statements[index] for index in order))
    assert same == (order == sorted(order))


# The same on every Python

GOLDEN = '''
"""Words."""
import b, a
from c import (e as f, d)
from __future__ import annotations

CONSTANTS = [0x1F, 1_000, 1.5e-3, 2j, True, None, ..., b"\\x00", u"text", "Gr\\u00f6\\u00dfe", ()]


@decorate(key="v")
class Net(Base, metaclass=Meta):
    """More words."""

    weight: dict[str, int] = {**old, "a": 1}
    """What a weight is."""

    def forward(self, x, /, y=1, *rest: int, only, other=None, **named) -> "Net":
        return lambda z, *a: (yield x) if (n := len(rest)) > 2 else not x @ y // z ** -1

    async def wait(self):
        async with lock as held, other:
            return [await one async for one in self if one] + [*{k: v for k, v in held.items()}]


def show(value, width, precision):
    try:
        print(f"{value!r:>{width}.{precision}f} {{kept}} {value:{width}} {value=}" "and" f"{'nested'}")
    except* (ValueError, TypeError) as error:
        raise Problem(value[1:2, ..., ::3]) from error
    else:
        global counter
        assert value, "never"
    finally:
        while value < width <= precision:
            break
    match value:
        case {"a": [1, *_], **rest} | Net(x=None, y=-1.5) if rest:
            pass
        case "b" | None as found:
            del value
'''
DIGEST = "6ece3d97f50fe8061773c539976e740bda65bf413a9c7129cec6deec3d761a91"


def interpreters() -> list[str]:
    """Other Pythons of this machine that can run the digest."""
    names = [shutil.which(f"python3.{minor}") for minor in range(11, 20)]
    found = [name for name in names if name] + [
        str(path) for path in sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))
    ]
    version = ["-c", "import sys; print(sys.version_info >= (3, 11), sys.version_info[:2])"]
    answers = {name: subprocess.run([name, *version], capture_output=True, text=True).stdout for name in found}
    return list({answer: name for name, answer in answers.items() if answer.startswith("True")}.values())


ALL_DIGESTS = """
import json, sys
from jumpboard.artefacts.code_digest import source_digest
print(json.dumps([source_digest(source) for source in json.load(sys.stdin)]))
"""


def test_digest_of_a_fixed_source() -> None:
    """A Python whose trees differ (3.12 adds empty pieces to f-strings) would rerun all that another Python made."""
    assert source_digest(GOLDEN) == DIGEST


@pytest.mark.parametrize("python", interpreters())
def test_other_pythons_agree(python: str) -> None:
    """As above, over every file of the package, on the Pythons that this machine has."""
    sources = [GOLDEN, *SOURCES.values()]
    done = subprocess.run(
        [python, "-c", ALL_DIGESTS],
        input=json.dumps(sources),
        env={"PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [source_digest(source) for source in sources]


# What a digest covers

EMPTY = {".".join(("jumpboard", *path.parent.relative_to(PACKAGE).parts)) for path in PACKAGE.rglob("__init__.py")}
LOADED = """
import importlib, json, sys
for module in sys.argv[1:]:
    importlib.import_module(module)
print(json.dumps([name for name in sys.modules if name.split(".")[0] == "jumpboard"]))
"""


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_is_digested_with_all_that_it_loads(stage: str) -> None:
    """A module that a stage runs and its digest does not hold can be edited without a rerun."""
    modules = [f"jumpboard.stages.{stage}", *NAMED.get(stage, [])]
    done = subprocess.run([sys.executable, "-c", LOADED, *modules], capture_output=True, text=True, check=True)
    loaded = {name for name in json.loads(done.stdout) if not is_outside(name)} - EMPTY
    if stage == "write_manifest":  # reads the names in the registries; what those import, it does not run
        loaded = {name for name in loaded if name.split(".")[1] not in ("claims", "data", "figures", "nets")}
    assert loaded <= set(reached(modules))
    assert f"jumpboard.stages.{stage}" in loaded


@pytest.mark.parametrize("stage", STAGES)
def test_imports_are_followed_as_python_itself_finds_them(stage: str) -> None:
    """One module too few keeps a stale number, one too many wastes a day: modulefinder reads them off the bytecode."""
    for module in (f"jumpboard.stages.{stage}", *NAMED.get(stage, [])):
        finder = ModuleFinder([str(PACKAGE.parent)], excludes=[module_of(name) for name in SOURCES if outside(name)])
        finder.import_hook(module)
        found = {name for name in finder.modules if name.split(".")[0] == "jumpboard"}
        assert found - EMPTY == set(reached([module])) - EMPTY


def outside(name: str) -> bool:
    return is_outside(module_of(name))


def test_packages_hold_nothing() -> None:
    """What stands in an `__init__.py` belongs to every module below it and would rerun all of them."""
    assert [path for path in PACKAGE.rglob("__init__.py") if path.stat().st_size] == []


def test_nothing_is_imported_in_a_way_that_the_digest_cannot_follow() -> None:
    """Relative imports and imports by a computed name are invisible to it; the latter stand in registries only."""
    for name, source in SOURCES.items():
        for node in ast.walk(ast.parse(source)):
            assert not (isinstance(node, ast.ImportFrom) and node.level), name
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called.endswith(("import_module", "__import__")):
                assert name.endswith("registry.py"), name


def test_writers_and_registries_stand_outside() -> None:
    """Else the next net, or a new line in a record, would retrain every other net."""
    for stage in STAGES:
        modules = reached([f"jumpboard.stages.{stage}", *NAMED.get(stage, [])])
        assert not any(module.startswith(tuple(f"{one}." for one in OUTSIDE)) for module in modules)
        assert not any(module.endswith(".registry") for module in modules)
    assert is_outside("jumpboard.errors")
    assert is_outside("jumpboard.artefacts.tables")
    assert not is_outside("jumpboard.errorsome")
    assert not is_outside("jumpboard.client.api")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the package that digests are taken of instead."""
    copy = tmp_path / "src" / "jumpboard"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(digests, "source_root", lambda: copy)
    forget()
    yield copy
    monkeypatch.undo()
    forget()


def forget() -> None:
    """As a new process would."""
    digests._read.cache_clear()
    digests.code_digest.cache_clear()


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A small run of every rule: digits by a resnet and a ViT, MNIST-1D by a resmlp, whose gradients are measured."""
    inventory = tmp_path_factory.mktemp("inventory") / "datasets.yaml"
    inventory.write_text(yaml.safe_dump(INVENTORY), encoding="utf-8")
    config = merged(read_yaml(ROOT / "config" / "config.yaml"), TINY)
    config["nets"] = config["nets"] | {"vit": {"family": "timm", "model": "vit_tiny_patch16_224"}}
    config["grid"] = [*config["grid"], {**config["grid"][0], "arch": "vit"}]
    return Plan(load(config | {"datasets": str(inventory)}))


def jobs(plan: Plan) -> dict[str, str]:
    """The code digest of every kind of job, by rule and the names that matter to it."""
    forget()
    found = {}
    for one in plan.artefacts():
        named = [one.keys[key] for key in ("figure", "table", "dataset", "arch") if key in one.keys]
        found["/".join([one.rule, *named])] = plan.code(one.rule, one.keys)
    return found | {"release": plan.code("release", {}), "write_manifest": plan.code("write_manifest", {})}


def edited(package: Path, name: str, plan: Plan, before: dict[str, str]) -> set[str]:
    """The jobs whose digest changes from `before` with one new statement in a module."""
    path = package / name
    source = path.read_text(encoding="utf-8")
    path.write_text(source + "\n_EDITED = 1\n", encoding="utf-8")
    after = jobs(plan)
    path.write_text(source, encoding="utf-8")
    assert before.keys() == after.keys()
    return {job for job in before if before[job] != after[job]}


def test_an_edit_to_a_net_concerns_that_net_only(package: Path, plan: Plan) -> None:
    """Days of training of one net would be thrown away for a change to another."""
    nets = plan.configuration.config["nets"]
    before = jobs(plan)
    with_a_net = {job for job in before if NAMED.get(job.split("/")[0]) == list(NETS.values())}
    for family, module in NETS.items():
        akin = {job for job in with_a_net if nets[job.split("/")[2]]["family"] == family}
        assert edited(package, f"nets/{module.rsplit('.', 1)[-1]}.py", plan, before) == akin != set()


def test_known_edits_concern_known_stages(package: Path, plan: Plan) -> None:
    """Symptom of snakemake #412 and #3456 at once: exactly the stages that use a module, and none besides."""
    trained = {"train_baseline", "expand_depth", "expand_width", "expand_chain"}
    rules = {
        "claims/rebound.py": {"evaluate_claims"},
        "training/optimisers.py": trained,
        "data/augmentation.py": trained,
        "data/digits.py": {"prepare_dataset"},
        "data/mnist1d.py": {"prepare_dataset", "prepare_fresh"},
        "data/mnist5k.py": set(),  # not in this config
        "data/card.py": {"describe_dataset"},
        "data/local.py": set(),  # not in this config
        "artefacts/downloads.py": set(),
        "measure/gradients.py": {"measure_gradients", "expand_depth", "expand_width", "expand_chain", "certify"},
        "theory/lipschitz.py": {"certify"},
        "theory/uniform.py": {"certify", "draw_figure"},
        "expansion/widening.py": {"expand_width"},
        "expansion/chain.py": {"expand_chain"},
        "expansion/choice.py": {"expand_depth"},
        "figures/style.py": {"draw_figure", "release"},
        "figures/learning_curves.py": {"draw_figure"},
        "artefacts/tables.py": set(),
        "nets/registry.py": set(),
    }
    before = jobs(plan)
    for name, expected in rules.items():
        changed = {job.split("/")[0] for job in edited(package, name, plan, before)}
        assert changed - ({"draw_figure"} if name.startswith("claims") else set()) == expected, name
    curves = edited(package, "figures/learning_curves.py", plan, before)
    assert {job.split("/")[1] for job in curves} == {"learning_curves"}


def test_a_further_net_changes_no_digest(package: Path, plan: Plan) -> None:
    """Adding is the commonest edit of all; it must cost the new cells only."""
    before = jobs(plan)
    (package / "nets" / "another.py").write_text("def build(): ...\n")
    registry = package / "nets" / "registry.py"
    text = registry.read_text()
    registry.write_text(text.replace("MODULES = {\n", 'MODULES = {\n    "another": "jumpboard.nets.another",\n'))
    assert registry.read_text() != text
    assert jobs(plan) == before


def test_the_format_number_changes_every_digest(package: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the one way to say that the writer now writes something else."""
    before = jobs(plan)
    monkeypatch.setattr(digests, "FORMAT", digests.FORMAT + 1)
    assert not set(before.values()) & set(jobs(plan).values())


def test_plan_hands_over_the_modules_that_a_config_names(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are loaded by name: without them an edit to a net, a loader or a rule would not be seen at all."""
    monkeypatch.setattr("jumpboard.configuration.plan.code_digest", lambda *modules: modules)
    configuration, used = plan.configuration, set()
    for one in plan.artefacts():
        stage, *named = plan.code(one.rule, one.keys)
        assert stage == f"jumpboard.stages.{one.rule}"
        assert set(named) <= set(NAMED.get(one.rule, []))
        match one.rule:
            case "train_baseline" | "measure_gradients" | "expand_depth" | "expand_width" | "expand_chain" | "certify":
                assert named == [NETS[configuration.config["nets"][one.keys["arch"]]["family"]]]
            case "prepare_dataset":
                assert named == [DATA[configuration.datasets[one.keys["dataset"]]["loader"]]]
            case "collect":
                assert named == [SCHEMAS[one.keys["table"]]]
            case "draw_figure":
                entry = figure_entry(one.keys["figure"])
                assert named == [entry.module, (SCHEMAS | RUN_SCHEMAS)[entry.table]]
            case "evaluate_claims":
                assert set(named) == {CLAIMS[claim["rule"]["kind"]] for claim in configuration.claims.values()}
        used |= set(named)
    assert used
