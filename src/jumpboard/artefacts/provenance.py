"""Where a file comes from: the same facts in every table's and checkpoint's header.

Nothing here depends on the clock, the host or a path outside the run's root, so that equal inputs give equal bytes.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TIERS = ("bytes", "close", "statistical")


def canonical(value: Any) -> str:
    """One JSON text per value: keys sorted, no spaces, NaN refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def config_digest(params: Any) -> str:
    """SHA-256 of the canonical JSON of the parameters that a stage was given."""
    return hashlib.sha256(canonical(params).encode()).hexdigest()


@dataclass(frozen=True)
class Provenance:
    """Digests of code and parameters, the parents' SHA-256 by path below the root, how the file was computed, and of
    which `cell` (its keys) it is, where it is of one.

    `tier` says what equality to expect of a second run: `bytes` (same machine kind, threads and versions), `close`
    (1e-4 relative from the same parents) or `statistical` (seed means within joint intervals).
    """

    code: str
    config: str
    parents: Mapping[str, str]
    seeds: tuple[int, ...]
    tier: str
    threads: int
    device: str
    versions: Mapping[str, str]
    cell: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "config": self.config,
            "parents": dict(sorted(self.parents.items())),
            "seeds": list(self.seeds),
            "tier": self.tier,
            "threads": self.threads,
            "device": self.device,
            "versions": dict(sorted(self.versions.items())),
            **({} if self.cell is None else {"cell": dict(self.cell)}),
        }
