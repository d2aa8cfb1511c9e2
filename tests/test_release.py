"""The released run that the README shows is whole, and every number written from it is still its own."""

import json
from pathlib import Path

import pytest

from jumpboard.artefacts import paths
from jumpboard.artefacts.compute import compute_table, machine, read_records, wall_minutes
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.generated import read_block, replace_block
from jumpboard.artefacts.tables import read_table
from jumpboard.artefacts.verification import read_manifest
from jumpboard.claims.ledger import rule_digest
from jumpboard.claims.readme_table import readme_table
from jumpboard.configuration.validation import checkout
from jumpboard.errors import InputError
from jumpboard.schemas.claims import CLAIMS
from jumpboard.schemas.metrics import METRICS
from jumpboard.stages.release import NOT_SHIPPED, check_default, expected_numbers

RESULTS = checkout() / "results" / paths.RELEASED
FIGURES = checkout() / "figures" / paths.RELEASED
README, CONFIG = checkout() / "README.md", checkout() / "config" / "config.yaml"


def test_every_listed_file_is_shipped_unchanged_but_for_checkpoints_and_rows() -> None:
    """Otherwise a reviewer of the released tables would audit something else than what was run."""
    manifest = read_manifest(RESULTS / paths.MANIFEST)
    for place, root in (("results", RESULTS), ("figures", FIGURES)):
        for name, entry in manifest[place].items():
            shipped = not (place == "results" and name.startswith(NOT_SHIPPED))
            assert (root / name).is_file() == shipped, name
            assert not shipped or sha256_of(root / name) == entry["sha256"], name
    for name, entry in read_manifest(RESULTS / paths.RECORDS / paths.MANIFEST)["results"].items():
        assert sha256_of(RESULTS / name) == entry["sha256"], name


def test_no_file_in_the_released_folders_is_unlisted() -> None:
    """A stray file there would look like a result of the run; PDFs are drawn from the listed tables."""
    manifest = read_manifest(RESULTS / paths.MANIFEST)
    records = read_manifest(RESULTS / paths.RECORDS / paths.MANIFEST)["results"]
    found = {path.relative_to(RESULTS).as_posix() for path in RESULTS.rglob("*") if path.is_file()}
    assert found <= {*manifest["results"], *records, f"{paths.RECORDS}/{paths.MANIFEST}"}
    pictures = {path.relative_to(FIGURES) for path in FIGURES.rglob("*") if path.is_file()}
    assert {path.as_posix() for path in pictures if path.suffix != ".pdf"} == set(manifest["figures"])
    assert {path.with_suffix(".png") for path in pictures if path.suffix == ".pdf"} <= pictures


def test_the_readme_shows_the_verdicts_and_the_cost_of_the_released_run() -> None:
    """A typed or stale verdict would be a false claim about the papers."""
    rows = read_table(RESULTS / paths.CLAIMS, CLAIMS).to_pylist()
    assert read_block(README, "claims") == readme_table(rows).rstrip("\n")
    records = read_records(RESULTS)
    assert compute_table(records) in read_block(README, "cost")
    assert f"{wall_minutes(records):.0f} minutes on {machine(records)}" in read_block(README, "cost")


def test_the_head_of_the_config_gives_the_numbers_of_the_released_run() -> None:
    """A user compares a first run with these; stale ones would make a good installation look broken."""
    records = read_records(RESULTS)
    metrics = sorted((RESULTS / "collect" / METRICS.name).rglob("*.parquet"))
    rows = [row for path in metrics for row in read_table(path, METRICS).to_pylist()]
    assert read_block(CONFIG, "expected") == expected_numbers(rows, wall_minutes(records), machine(records))


def test_verdicts_carry_the_digests_of_the_rules_that_are_in_force() -> None:
    """A rule edited after the run would otherwise stand beside a verdict that it did not give."""
    claims = json.loads((RESULTS / paths.CONFIG).read_text(encoding="utf-8"))["claims"]
    rows = read_table(RESULTS / paths.CLAIMS, CLAIMS).to_pylist()
    assert {row["claim"] for row in rows} == set(claims)
    assert {row["rule_digest"] for row in rows} == {rule_digest(claim) for claim in claims.values()}


def test_a_run_of_another_config_is_not_released(tmp_path: Path) -> None:
    """Numbers of a smoke run in the README would be false claims about the papers."""
    check_default(RESULTS)
    stored = json.loads((RESULTS / paths.CONFIG).read_text(encoding="utf-8"))
    stored["config"]["trainings"]["resmlp"]["steps"] = 3
    (tmp_path / paths.CONFIG).write_text(json.dumps(stored), encoding="utf-8")
    with pytest.raises(InputError, match=r"config\.json: not the config of config/config\.yaml"):
        check_default(tmp_path)


def test_a_block_is_replaced_between_its_markers_and_nowhere_else(tmp_path: Path) -> None:
    """A slip here would eat hand-written text of the README."""
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- generated: x -->\nold\n<!-- end: x -->\nbelow\n", encoding="utf-8")
    replace_block(page, "x", "new\nlines")
    assert page.read_text(encoding="utf-8").splitlines() == [
        "above", "<!-- generated: x -->", "new", "lines", "<!-- end: x -->", "below",
    ]  # fmt: skip
    assert read_block(page, "x") == "new\nlines"
    with pytest.raises(InputError, match=r"page\.md: needs one line with 'generated: y'"):
        replace_block(page, "y", "")


def test_minutes_are_those_in_which_a_job_ran() -> None:
    """Overlapping jobs take 90 s, one after a pause 30 s; a release made in two calls must not count the pause."""
    spans = ((0.0, 60.0), (30.0, 60.0), (10.0, 5.0), (1000.0, 30.0))
    records = [{"started": start, "wall_seconds": length} for start, length in spans]
    assert wall_minutes(records) == pytest.approx(2.0)
