"""`jumpboard inspect FILE`: schema, units, meanings and provenance of a table or checkpoint file, down to the data."""

import argparse
from pathlib import Path

NAME = "inspect"
HELP = "schema, units and provenance chain of a table or checkpoint file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a .parquet or .safetensors file of a run")


def run(arguments: argparse.Namespace) -> int:
    """Read and print. Raises InputError for any other file."""
    from jumpboard.audit.inspection import inspect  # pyarrow, which the other commands do without

    print(inspect(arguments.file))
    return 0
