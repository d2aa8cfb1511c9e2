"""Lives of one stage below several roots, each killed at a given change of the file system, without a start per life.

A process imports the stage once and forks a child for every life. Below each root the lives follow each other: the
j-th is killed with SIGKILL at the `limits[j]`-th sync, rename or removal, and never where that is -1.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SWEEP = """
import gc, importlib, json, os, signal, sys
from pathlib import Path
import pandas, pyarrow.compute  # pyarrow would import them anew in each child
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.job import run_stage
from jumpboard.nets import resmlp
name, roots, arguments = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
stage = importlib.import_module(f"jumpboard.stages.{name}")
gc.freeze()  # or each child would copy all pages

def life(root, limit):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    calls = 0
    def dying(real):
        def call(*places, **options):
            nonlocal calls
            calls += 1
            if calls == limit:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*places, **options)
        return call
    os.fsync = dying(lambda handle: None)  # a kill takes nothing from the page cache
    os.replace, os.unlink, os.rmdir = map(dying, (os.replace, os.unlink, os.rmdir))
    sys.argv = [name, *(text.replace("ROOT", root) for text in arguments)]
    run_stage(name, stage.body)
    sys.stderr.flush()
    os._exit(0)

def digests(root):
    outputs = arguments[arguments.index("--outputs") + 1 :]
    places = [text.partition("=")[2].replace("ROOT", root) for text in outputs]
    return [sha256_of(Path(place)) for place in places if os.path.exists(place)]

for root, limits in roots:
    lives = [[life(root, limit), digests(root)] for limit in limits]
    print(json.dumps(lives), flush=True)
    if lives[0][0] == 0:
        break
"""


@dataclass(frozen=True)
class Lives:
    """Of one root: each life's exit status, and the SHA-256 of the outputs that were there after it, in their order."""

    statuses: tuple[int, ...]
    digests: tuple[list[str], ...]


def sweep(
    stage: str, roots: Sequence[Path], limits: Sequence[Sequence[int]], arguments: Sequence[str]
) -> tuple[list[Lives], str]:
    """The lives below each root, up to the first root whose first life came to its end, and all messages.

    `arguments` are the stage's command line below `roots[0]`.
    """
    general = [text.replace(str(roots[0]), "ROOT") for text in arguments]
    plan = [[str(root), list(own)] for root, own in zip(roots, limits, strict=True)]
    command = [sys.executable, "-c", SWEEP, stage, json.dumps(plan), *general]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = [zip(*json.loads(line), strict=True) for line in done.stdout.splitlines()]
    return [Lives(tuple(statuses), tuple(digests)) for statuses, digests in found], done.stderr
