"""What `make test` promises about the source itself: a contributor must learn of it here, not in a review."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from jumpboard.configuration.load import load_files
from jumpboard.configuration.plan import Plan
from test_workflow import BIN, copy_checkout, environment

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "jumpboard").rglob("*.py"))
MODULES = [path for path in SOURCES if path.name != "__init__.py"]
CONFIG = ROOT / "config" / "config.yaml"
OVERLAYS = sorted(set((ROOT / "config").glob("*.yaml")) - {CONFIG, *(ROOT / "config").glob("[cd]*s.yaml")})
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__"}
RESTRICTED_PICKLE = (
    ROOT / "src/jumpboard/data/layouts/batch_pickle.py"
)  # its own lookup; tests/test_copy_faults.py attacks it
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def said(*command: str) -> str:
    """Nothing if a tool is content, else what it says."""
    done = subprocess.run([str(BIN / command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check"),
        ("ruff", "format", "--check"),
        ("snakefmt", "--check", "Snakefile", "workflow"),
        ("mypy",),
    ],
    ids=" ".join,
)
def test_tools_are_content(command: tuple[str, ...]) -> None:
    """One style and checked types, or every later change shows differences that mean nothing."""
    assert said(*command) == ""


def test_snakemake_lint_is_content(tmp_path: Path) -> None:
    """Its rules keep a workflow runnable on other people's machines."""
    place = copy_checkout(tmp_path)
    command = [str(BIN / "snakemake"), "--lint"]
    done = subprocess.run(command, cwd=place, env=environment(place), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Congratulations" in done.stdout + done.stderr


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT / "src").as_posix())
def test_modules_are_short_and_say_what_they_are(path: Path) -> None:
    """A file that cannot be read in one go hides what it does."""
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= 300
    tree = ast.parse(source)
    assert len((ast.get_docstring(tree) or "").strip()) > 20, "no docstring that says what the module is for"
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"class {node.name} has no docstring"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT / "src").as_posix())
def test_no_code_is_run_out_of_data(path: Path) -> None:
    """A downloaded file or a column name must never be able to run code."""
    admitted = {"pickle"} if path == RESTRICTED_PICKLE else set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            assert not {name.split(".")[0] for name in names} & (UNSAFE_MODULES - admitted)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pickle":
            assert node.attr in ("Unpickler", "UnpicklingError")
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in UNSAFE_CALLS
            assert called not in ("torch.save", "np.save", "yaml.load", "os.system")
            arguments = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            assert called != "torch.load" or arguments.get("weights_only") == "True"
            assert arguments.get("allow_pickle", "False") == "False"
            assert arguments.get("shell", "False") == "False"


def test_the_library_knows_nothing_of_snakemake() -> None:
    """A stage must be runnable, and its tables readable, without the workflow."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] == "snakemake"], path


@pytest.mark.parametrize("overlay", [None, *OVERLAYS], ids=lambda path: path.stem if path else "default")
def test_paths_of_artefacts_read_as_nothing_else(overlay: Path | None) -> None:
    """`depth=3` would be read as a partition by pyarrow, and clash with the column; a space or `..` with the shell."""
    plan = Plan(load_files([CONFIG, overlay] if overlay else [CONFIG]))
    for one in plan.artefacts():
        assert not set(one.path) & set("= {}\\:*?'\"<>|"), one.path
        assert not {"", ".", ".."} & set(one.path.split("/")), one.path


def test_rules_and_stages_have_the_same_names() -> None:
    """Who reads a rule must find its stage without a search."""
    stages = {path.stem for path in (ROOT / "src/jumpboard/stages").glob("*.py")} - {"__init__"}
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "workflow" / "rules").glob("*.smk"))]
    called = {
        line.split("jumpboard.stages.")[1].split()[0] for text in texts for line in text.splitlines() if "-m " in line
    }
    assert called == stages
    named = {line.split()[1].rstrip(":") for text in texts for line in text.splitlines() if line.startswith("rule ")}
    assert named == stages - {"draw_figure"}, "one rule per figure calls the stage draw_figure"
    assert sys.version_info >= (3, 11)
