"""Take over a run's results that were copied here without Snakemake's records.

    python -m jumpboard.artefacts.adopt config/config.yaml [OVERLAY ...]

Audits the run (`jumpboard.audit`), compares config and every table's and checkpoint's code and config digest with the
checkout's, and only if all agree sets all modification times to one past instant. `snakemake --touch --forceall` (see
`make adopt`) then marks them as up to date; without these checks it would do so for stale results too.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from jumpboard.artefacts import paths
from jumpboard.artefacts.verification import Fault, digest_faults, read_config, read_manifest
from jumpboard.audit.audit import audit
from jumpboard.configuration.load import load_files
from jumpboard.configuration.plan import Plan
from jumpboard.errors import InputError

PAST = 946_684_800  # 2000-01-01: before any input, so that touching in order of the rules sets the order of the files
MOST_SHOWN = 20


def faults(plan: Plan, places: dict[str, Path]) -> Iterator[Fault]:
    """All that speaks against taking the results over."""
    listed = read_manifest(places["results"] / paths.MANIFEST)
    unlisted = [one for one in plan.artefacts() if one.path not in listed.get(one.place, {})]
    yield from (
        Fault(str(places[one.place] / one.path), "in the config's grid, but not in the manifest") for one in unlisted
    )
    report = audit(places["results"], places["figures"])
    yield from (Fault(file, reason) for file, reason in report.failed.items())
    yield from (Fault(str(places["results"] / name), "not shipped, but needed") for name in report.not_shipped)
    if report.failed or report.not_shipped or unlisted:
        return
    resolved = places["results"] / paths.CONFIG
    if read_config(resolved) != json.loads(json.dumps(plan.configuration.as_json())):
        yield Fault(str(resolved), "holds another config, inventory or ledger than the checkout")
    artefacts = [one for one in plan.artefacts() if one.path.endswith((".parquet", ".safetensors"))]
    yield from digest_faults({places[one.place] / one.path: plan.digests(one.rule, one.keys) for one in artefacts})


def adopt(configs: Sequence[Path]) -> int:
    """Check and take over; the exit status. Raises InputError where there is no whole run to check."""
    plan = Plan(load_files(configs))
    places = {place: Path(plan.configuration.config[place]) for place in ("results", "figures")}
    found = list(faults(plan, places))
    for fault in found[:MOST_SHOWN]:
        print(f"{fault.file}: {fault.reason}", file=sys.stderr)
    if found:
        print(f"not adopted: {len(found)} files do not fit this checkout", file=sys.stderr)
        return 1
    for place in places.values():
        for path in place.rglob("*"):
            if path.is_file() and not path.is_symlink() and paths.RELEASED not in path.relative_to(place).parts:
                os.utime(path, (PAST, PAST))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(adopt([Path(argument) for argument in sys.argv[1:]]))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
