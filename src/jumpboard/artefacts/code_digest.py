"""A digest of the code that a result depends on, the same for code that means the same.

It covers a stage's module, all modules of this package that it imports, directly or not, and the modules that a cell's
config names (net, data set), which registries load by name. It walks the syntax tree: fields in order, docstrings,
comments, formatting and the order of imports left out, so that only an edit with a meaning changes it, and Python's own
changes to its trees between versions do not.

Outside the digest stand the modules that cannot change a number (writer, provenance, commands) and the registries,
which would tie every net to all others. Bump FORMAT by hand when a change to those does alter what is written.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import jumpboard

FORMAT = 2
PACKAGE = "jumpboard"
OUTSIDE = (f"{PACKAGE}.artefacts", f"{PACKAGE}.cli", f"{PACKAGE}.errors")
SKIPPED_FIELDS = {"kind", "ctx", "type_comment"}


def source_root() -> Path:
    """The folder of the imported package."""
    return Path(next(iter(jumpboard.__path__))).resolve()


def _file_of(module: str) -> Path | None:
    place = source_root().joinpath(*module.split(".")[1:])
    for candidate in (place.with_suffix(".py"), place / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def is_outside(module: str) -> bool:
    """Whether a module is left out of digests."""
    return f"{module}.".startswith(tuple(f"{name}." for name in OUTSIDE)) or module.rsplit(".", 1)[-1] == "registry"


def _is_text(statement: ast.stmt) -> bool:
    """A string that stands alone: a docstring of a module, class, function or attribute."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _arranged(block: list[ast.stmt]) -> list[ast.stmt]:
    """The statements without docstrings, with every run of imports put in one order, one name each."""
    arranged: list[ast.stmt] = []
    run: list[ast.stmt] = []
    for statement in [*(one for one in block if not _is_text(one)), None]:
        if isinstance(statement, ast.Import):
            run += [ast.Import([alias]) for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            run += [ast.ImportFrom(statement.module, [alias], statement.level) for alias in statement.names]
        else:
            arranged += sorted(run, key=lambda one: list(_tokens(one)))
            run = []
            arranged += [statement] if statement is not None else []
    return arranged


def _tokens(node: object) -> Iterator[str]:
    if isinstance(node, ast.AST):
        yield f"({type(node).__name__}"
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(node, ast.JoinedStr):  # Python 3.12 adds empty pieces to format specifications
                value = [piece for piece in node.values if getattr(piece, "value", None) != ""]
            if name in SKIPPED_FIELDS or value is None or value == []:
                continue
            if isinstance(value, list) and isinstance(value[0], ast.stmt):
                value = _arranged(value)
            yield name
            yield from _tokens(value)
        yield ")"
    elif isinstance(node, list):
        yield "["
        for item in node:
            yield from _tokens(item)
        yield "]"
    else:
        yield repr(node)


def source_digest(source: str) -> str:
    """SHA-256 of a module's meaning."""
    return hashlib.sha256("\n".join(_tokens(ast.parse(source))).encode()).hexdigest()


@cache
def _read(module: str) -> tuple[str, tuple[str, ...]]:
    """Digest of one module and the package's modules it imports, wherever in it the import stands."""
    path = _file_of(module)
    assert path is not None, module
    source = path.read_text(encoding="utf-8")
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    ours = {name for name in imported if name.split(".")[0] == PACKAGE and _file_of(name) is not None}
    return source_digest(source), tuple(sorted(ours))


def reached(modules: Iterable[str]) -> tuple[str, ...]:
    """The given modules and all of the package that they import, directly or not, less those outside the digest."""
    pending, seen = list(modules), set()
    while pending:
        module = pending.pop()
        if module in seen or is_outside(module):
            continue
        seen.add(module)
        pending += _read(module)[1]
    return tuple(sorted(seen))


@cache
def code_digest(*modules: str) -> str:
    """The digest of the given modules and all they reach. An edit is seen by a new process only."""
    parts = [f"{module} {_read(module)[0]}" for module in reached(modules)]
    return hashlib.sha256("\n".join([f"format {FORMAT}", *parts]).encode()).hexdigest()
