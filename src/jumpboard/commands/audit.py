"""`jumpboard audit [RESULTS] [--against DIR] [--figures DIR] [--json]`: is a run whole, consistent, and what it claims?

Works on a copied results folder alone, without Snakemake's records and without torch. Nothing is written.
"""

import argparse
import json
from pathlib import Path

NAME = "audit"
HELP = "re-hash, recompute and compare the files of a finished run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "results", type=Path, nargs="?", default=Path("results"), metavar="RESULTS", help="a run's results folder"
    )
    parser.add_argument("--figures", type=Path, metavar="DIR", help="its figures, where they do not lie beside it")
    parser.add_argument("--against", type=Path, metavar="DIR", help="results folder of another run to compare with")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Audit and print; 0 where the run holds, 1 where it does not. Raises InputError where there is none."""
    from jumpboard.audit.audit import audit  # pyarrow and scipy, which the other commands do without

    report = audit(arguments.results, arguments.figures, arguments.against)
    print(json.dumps(report.as_json(), allow_nan=False) if arguments.json else report.as_text())
    return 0 if report.good else 1
