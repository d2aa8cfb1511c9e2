"""Where each artefact lies below a run's root. Patterns keep their wildcards in braces."""

from collections.abc import Mapping
from typing import Any

CELL_KEYS = ("dataset", "arch", "depth", "width", "samples")
CELL = "{dataset}/{arch}/depth_{depth}/width_{width}/samples_{samples}"
CONFIG = "config.json"
MANIFEST = "manifest.json"
CLAIMS = "evaluate_claims/claims.parquet"
COLLECTED = "collect/{table}/{dataset}/{arch}.parquet"
FITTED = "fit_power_law/{table}/{dataset}/{arch}.parquet"
FIGURE = "{figure}/{dataset}/{arch}"
RECORDS = "records"
RESUME = ".resume"
RELEASED = "released"
REPORT = "report.zip"


def cell_table(rule: str, table: str) -> str:
    """Pattern of a per-cell table."""
    return f"{rule}/{table}/{CELL}.parquet"


def cell_checkpoints(rule: str) -> str:
    """Pattern of a cell's checkpoint file."""
    return f"checkpoints/{rule}/{CELL}.safetensors"


def dataset_table(rule: str, table: str) -> str:
    """Pattern of a per-data-set table."""
    return f"{rule}/{table}/{{dataset}}.parquet"


def filled(pattern: str, keys: Mapping[str, Any]) -> str:
    """A pattern with its wildcards filled from `keys`."""
    return pattern.format(**keys)
