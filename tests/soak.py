"""`make soak`: the smoke run, killed a hundred times at random moments, must end with the bytes of an undisturbed one.

    python tests/soak.py [--kills N] [--seed S]

Works in a folder of its own, which is removed unless something failed. Twenty to thirty minutes on two cores.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from recovery import Workflow, survive
from test_workflow import copy_checkout

LONGEST = 12.0  # seconds from a life's first stage to its kill, at most
COMMAND = ("--cores", "2", "--configfile", "config/smoke.yaml")


def main() -> int:
    """Print what survived; the exit status."""
    parser = argparse.ArgumentParser(description="Kill the smoke run at random moments.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="jumpboard-soak-"))
    workflow = Workflow(copy_checkout(folder / "checkout"), "runs/smoke", COMMAND)
    print(f"{options.kills} kills by seed {options.seed} in {folder}", flush=True)
    begun = time.monotonic()
    try:
        if workflow.start().wait() != 0:
            print(workflow.log.read_text(encoding="utf-8"))
            return 1
        expected = workflow.contents()
        print(f"undisturbed: {len(expected)} files after {time.monotonic() - begun:.0f} s", flush=True)
        workflow.forget()
        report = survive(workflow, expected, options.kills, options.seed, LONGEST, say=True)
    finally:
        workflow.end()
    print(*report.failures, f"{report} after {time.monotonic() - begun:.0f} s", sep="\n")
    if not report.failures:
        shutil.rmtree(folder)
    return int(bool(report.failures))


if __name__ == "__main__":
    sys.exit(main())
