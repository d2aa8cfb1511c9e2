"""Stages called in this process as the DAG calls them in their own."""

import importlib
import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

from jumpboard.artefacts.job import run_stage


def called(stage: str, arguments: Sequence[str]) -> tuple[int, str]:
    """A stage's exit status and what it printed on both streams."""
    said, body = io.StringIO(), importlib.import_module(f"jumpboard.stages.{stage}").body
    with redirect_stdout(said), redirect_stderr(said), patch.object(sys, "argv", [stage, *arguments]):
        try:
            run_stage(stage, body)
        except SystemExit as ended:
            return int(ended.code or 0), said.getvalue()
    return 0, said.getvalue()


def refusal(stage: str, arguments: Sequence[str]) -> str:
    """The one line that a stage ends with; it must be the only one, but for lines of progress before it."""
    status, said = called(stage, arguments)
    assert status == 2, said
    *before, line = said.splitlines()
    assert all(": step " in other for other in before), said
    return line
