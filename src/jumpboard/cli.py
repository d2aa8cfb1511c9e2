"""`jumpboard COMMAND ...`: the tools of the library for people who only want one of them.

A command is a module of `jumpboard.commands` with NAME, HELP, `add_arguments(parser)` and `run(arguments) -> status`.
Exit status: 0 good, 1 the check failed, 2 bad input, with one line on standard error.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from jumpboard.commands import fit, moments
from jumpboard.errors import InputError

COMMANDS = (fit, moments)


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {' '.join(message.split())}\n")


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = OneLineParser(prog="jumpboard", description="Measuring tools of the replication.")
    subparsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        own = subparsers.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        command.add_arguments(own)
        own.set_defaults(run=command.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except InputError as error:
        print(f"jumpboard {arguments.command}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
