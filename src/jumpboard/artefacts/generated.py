"""Text that is written by the program inside a file that is otherwise written by hand, between two marker lines.

A marker line holds `generated: <name>`, the closing one `end: <name>`, in whatever comment syntax the file has.
"""

from pathlib import Path

from jumpboard.artefacts.files import replacing
from jumpboard.errors import InputError


def replace_block(path: Path, name: str, text: str) -> None:
    """Put `text` between the markers of `name`. Raises InputError where the file lacks either of them."""
    lines = path.read_text(encoding="utf-8").splitlines()
    first = [index for index, line in enumerate(lines) if f"generated: {name}" in line]
    last = [index for index, line in enumerate(lines) if f"end: {name}" in line]
    if len(first) != 1 or len(last) != 1 or first[0] > last[0]:
        raise InputError(f"{path}: needs one line with 'generated: {name}' and after it one with 'end: {name}'")
    lines[first[0] + 1 : last[0]] = text.splitlines()
    with replacing(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_block(path: Path, name: str) -> str:
    """The text between the markers of `name`; empty where there are none."""
    _, _, after = path.read_text(encoding="utf-8").partition(f"generated: {name}")
    inside, _, _ = after.partition(f"end: {name}")
    return "\n".join(inside.splitlines()[1:-1])
