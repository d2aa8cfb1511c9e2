"""`jumpboard COMMAND ...`: the tools of the library for people who only want one of them.

A command is a module of `jumpboard.commands` with NAME, HELP, `add_arguments(parser)` and `run(arguments) -> status`.
Exit status: 0 good, 1 the check failed, 2 bad input, with one line on standard error.
"""

import os
import signal
import sys
from collections.abc import Sequence

from jumpboard.artefacts.arguments import OneLineParser
from jumpboard.commands import audit, fit, inspect, moments
from jumpboard.errors import InputError

COMMANDS = (fit, moments, audit, inspect)


def parser() -> OneLineParser:
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
        status = int(arguments.run(arguments))
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        _drop_output()
        return 128 + signal.SIGPIPE
    except OSError as error:
        _drop_output()
        return _refused(arguments.command, f"{error.filename or 'standard output'}: {error.strerror}")
    except InputError as error:
        return _refused(arguments.command, str(error))
    return status


def _refused(command: str, reason: str) -> int:
    print(f"jumpboard {command}: {reason}", file=sys.stderr)
    return 2


def _drop_output() -> None:
    """Send what is still to be written nowhere: the interpreter would try again at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
