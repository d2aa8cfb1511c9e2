"""Columns of any CSV or Parquet table, by name or as formulas over names: + - * / ** parentheses and numbers.

A formula is parsed to a syntax tree, of which these node types alone are evaluated, all in float64: nothing is run, and
no number can grow beyond a float. `name=formula` gives the result a name.
"""

import ast
import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from jumpboard.errors import InputError
from jumpboard.theory.forms import FloatArray

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST, DEEPEST = 1000, 50
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
ACCEPTED = "accepted: column names, numbers, + - * / ** and parentheses"


def read_any_table(path: Path) -> "pa.Table":
    """A CSV or Parquet file as an arrow table. Raises InputError, naming the file, for anything else, for a table
    without rows, and for one that names a column twice."""
    import pyarrow as pa  # the other commands do without
    import pyarrow.csv
    import pyarrow.parquet

    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: not a regular file; accepted: a CSV or Parquet file")
        with path.open("rb") as stream:
            parquet = stream.read(4) == b"PAR1"
        table = pyarrow.parquet.ParquetFile(path).read() if parquet else pyarrow.csv.read_csv(path)
    except InputError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:  # arrow's errors are of the first two kinds, or its own
        reason = error.strerror if isinstance(error, OSError) and error.strerror else shorten(str(error), 120)
        raise InputError(f"{path}: cannot be read as CSV or Parquet: {reason}") from None
    names = table.column_names
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"{path}: column '{twice[0]}' stands twice; accepted: each name once")
    if not table.num_rows:
        raise InputError(f"{path}: has no rows; accepted: one row per measured net")
    return table


def labels(table: "pa.Table", name: str, argument: str) -> list[Any]:
    """The values of a column that names seeds or groups. Raises InputError where one is missing."""
    values: list[Any] = _column(table, name, argument).to_pylist()
    if None in values:
        raise InputError(f"{argument}: column '{name}' lacks a value in row {values.index(None) + 1}")
    return values


def numbers(table: "pa.Table", text: str, argument: str) -> tuple[str, FloatArray]:
    """A column, formula or `name=formula`: its name and its values [n], all finite.

    Raises InputError naming the argument, and the first row without a finite number.
    """
    name, equals, formula = text.partition("=")
    if text in table.column_names:
        name, values = text, _numeric(table, text, argument)
    else:
        name, formula = (name.strip(), formula) if equals else (text, text)
        values = _formula(table, formula, argument)
    if not name:
        raise InputError(f"{argument} '{text}': lacks a name before =; accepted: name=formula")
    fault = np.flatnonzero(~np.isfinite(values))
    if len(fault):
        value = values[fault[0]]
        raise InputError(f"{argument} '{text}': row {fault[0] + 1} is {value}; accepted: finite numbers in every row")
    return name, values


def _column(table: "pa.Table", name: str, argument: str) -> "pa.ChunkedArray":
    if name not in table.column_names:
        known = shorten(", ".join(table.column_names), 200)
        raise InputError(f"{argument}: column '{name}' is not in the table; accepted: {known}")
    return table.column(name)


def _numeric(table: "pa.Table", name: str, argument: str) -> FloatArray:
    column = _column(table, name, argument)
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if not any(is_kind(column.type) for is_kind in kinds):
        raise InputError(f"{argument}: column '{name}' holds {column.type}; accepted: numbers")
    values: FloatArray = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    return values


def _formula(table: "pa.Table", formula: str, argument: str) -> FloatArray:
    if len(formula) > LONGEST:
        raise InputError(f"{argument}: a formula of {len(formula)} characters; accepted: up to {LONGEST}")
    try:
        tree = ast.parse(formula.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"{argument} '{shorten(formula, 80)}': not a formula; {ACCEPTED}") from None
    with np.errstate(all="ignore"):
        value = _value(tree, table, argument, 0)
    return np.broadcast_to(value, table.num_rows).astype(np.float64)


def _value(node: ast.AST, table: "pa.Table", argument: str, depth: int) -> FloatArray:
    if depth > DEEPEST:
        raise InputError(f"{argument}: a formula nested more than {DEEPEST} deep; accepted: up to {DEEPEST}")

    def inner(child: ast.AST) -> FloatArray:
        return _value(child, table, argument, depth + 1)

    match node:
        case ast.Name(id=name):
            return _numeric(table, name, argument)
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            try:
                return np.asarray(number, dtype=np.float64)
            except OverflowError:
                raise InputError(f"{argument}: a number of the formula is too large; {ACCEPTED}") from None
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return np.asarray(OPERATORS[type(op)](inner(operand)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return np.asarray(OPERATORS[type(op)](inner(left), inner(right)))
    raise InputError(f"{argument}: {type(node).__name__} in a formula; {ACCEPTED}")


def positive(values: FloatArray, name: str, argument: str) -> None:
    """Raise InputError, naming the first row, unless all values are above 0."""
    fault = np.flatnonzero(values <= 0)
    if len(fault):
        raise InputError(
            f"{argument} '{name}': row {fault[0] + 1} is {values[fault[0]]:g}; accepted: numbers above 0,"
            " since logarithms are fitted"
        )


def worst(y: FloatArray, count: int) -> Sequence[int]:
    """The rows without the `count` with the highest y, in their order."""
    dropped = set(np.argsort(-y, kind="stable")[:count].tolist())
    return [row for row in range(len(y)) if row not in dropped]
