"""A ledger that claims more runs than its tables hold is the worst that it can do (token-optimizer-mcp #404): of the
released tables a seed and a depth are taken away, claim by claim of the ledger, and the verdict must go with them."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from jumpboard.artefacts import paths
from jumpboard.artefacts.tables import concatenate
from jumpboard.artefacts.verification import read_config
from jumpboard.claims.base import NOT_EVALUATED, SUPPORTED
from jumpboard.claims.ledger import evaluate
from jumpboard.claims.registry import MODULES, rule_of
from jumpboard.claims.run_values import site_of
from jumpboard.configuration.validation import checkout
from jumpboard.stages.evaluate_claims import TABLES, expected_cells

RESULTS = checkout() / "results" / paths.RELEASED
LEDGER: dict[str, Any] = yaml.safe_load(Path(checkout() / "config/claims.yaml").read_text())
CLAIMS = [(claim, place) for claim, entry in LEDGER.items() for place in range(len(entry["evaluated_on"]))]
NAMES = [f"{claim}-{'-'.join(LEDGER[claim]['evaluated_on'][place].values())}" for claim, place in CLAIMS]

Rows = list[dict[str, Any]]
Lost = Callable[[dict[str, Any]], bool]


@pytest.fixture(scope="module")
def cells() -> dict[str, Rows]:
    return expected_cells(read_config(RESULTS / paths.CONFIG)["config"])


@pytest.fixture(scope="module")
def tables() -> dict[str, Rows]:
    """The released tables, collected."""
    return {
        schema.name: concatenate(sorted((RESULTS / "collect" / schema.name).rglob("*.parquet")), schema)
        for schema, _ in TABLES
    }


def own_cells(claim: str, net: dict[str, str], cells: dict[str, Rows]) -> Rows:
    """The cells that the claim is judged on."""
    place = net.get("relative_site")
    return [
        cell
        for cell in cells.get(LEDGER[claim]["tables"][0], [])
        if (cell["dataset"], cell["arch"]) == (net["dataset"], net["arch"])
        and (place is None or site_of(place, cell["depth"]) is not None)
    ]


def named(own: Rows, size: int, lost: Lost) -> list[str]:
    """Runs that are lost, by cell; those of a cell that lost all its seeds by the cell alone. `size` 0: all sizes."""
    depths, widths, sizes = (sorted({cell[key] for cell in own}) for key in ("depth", "width", "samples"))
    seeds, words = sorted({seed for cell in own for seed in cell["seeds"]}), []
    for depth, width, samples in product(depths, widths, [size] if size else sizes):
        cell = f"depth {depth}, width {width}, samples {samples}"
        gone = [seed for seed in seeds if lost({"depth": depth, "width": width, "samples": samples, "seed": seed})]
        words += [cell] if gone == seeds else [f"{cell}, seed {seed}" for seed in gone]
    return words


@pytest.mark.parametrize("what", ["seed", "depth", "seed of one cell", "seed and depth"])
@pytest.mark.parametrize(("claim", "place"), CLAIMS, ids=NAMES)
def test_a_verdict_goes_with_its_runs_and_names_them(
    claim: str, place: int, what: str, cells: dict[str, Rows], tables: dict[str, Rows]
) -> None:
    net = LEDGER[claim]["evaluated_on"][place]
    own = own_cells(claim, net, cells)
    if not own:
        pytest.skip("the released run has no cells for it")
    cell = max(own, key=lambda one: (one["width"], one["depth"]))  # a wide net: it counts at every loss level
    depth, width, seed = cell["depth"], cell["width"], cell["seeds"][-1]
    losses: dict[str, Lost] = {
        "seed": lambda row: row["seed"] == seed,
        "depth": lambda row: row["depth"] == depth,
        "seed of one cell": lambda row: (row["depth"], row["width"], row["seed"]) == (depth, width, seed),
        "seed and depth": lambda row: row["seed"] == seed or row["depth"] == depth,
    }
    lost = losses[what]
    left = tables | {name: [row for row in tables[name] if not lost(row)] for name in LEDGER[claim]["tables"]}
    for row in evaluate({claim: LEDGER[claim] | {"evaluated_on": [net]}}, cells, left):
        assert row["verdict"] == NOT_EVALUATED
        assert (row["n"], row["estimate"], row["low"], row["high"], row["control_share"]) == (0, None, None, None, None)
        expected, found = named(own, row["samples"], lost), row["missing"].split("; ")
        if row["checkpoint"].startswith("loss_"):  # widths that some run did not bring there do not count
            assert set(found) <= set(expected) or row["reason"].startswith("at no width")
        else:
            assert found == expected


@pytest.mark.parametrize("claim", LEDGER)
def test_without_a_loss_there_is_a_verdict(claim: str, cells: dict[str, Rows], tables: dict[str, Rows]) -> None:
    """Else the tests above would pass on a ledger that never judges anything."""
    rows = evaluate({claim: LEDGER[claim]}, cells, tables)
    judged = {(row["dataset"], row["arch"]) for row in rows if row["verdict"] != NOT_EVALUATED}
    expected = [net for net in LEDGER[claim]["evaluated_on"] if own_cells(claim, net, cells)]
    there = [
        (net["dataset"], net["arch"])
        for net in expected
        if all(any(row["dataset"] == net["dataset"] for row in tables[name]) for name in LEDGER[claim]["tables"])
    ]
    assert judged == set(there)
    assert all(row["reason"] for row in rows if row["verdict"] == NOT_EVALUATED)


def test_a_claim_on_a_table_that_no_rule_makes_names_the_table(cells: dict[str, Rows]) -> None:
    """It is in the ledger all the same: a claim that is left out looks like one that was never made."""
    unmade = {claim: entry for claim, entry in LEDGER.items() if not {*entry["tables"]} <= cells.keys()}
    for row in evaluate(unmade, cells, {}):
        (table,) = set(LEDGER[row["claim"]]["tables"]) - cells.keys()
        assert (row["verdict"], row["missing"]) == (NOT_EVALUATED, f"table {table}")
        assert row["reason"] == f"no rule makes table {table} yet"


@pytest.mark.parametrize("kind", sorted(MODULES))
def test_every_rule_says_which_estimates_speak_for_the_claim(kind: str) -> None:
    """The overview draws estimates on the side that it names."""
    low, high = rule_of(kind).SUPPORTING
    assert low is None or high is None or low < high


def test_supported_estimates_lie_on_the_side_that_the_rule_names(
    cells: dict[str, Rows], tables: dict[str, Rows]
) -> None:
    for row in evaluate(LEDGER, cells, tables):
        if row["verdict"] == SUPPORTED:
            assert row["supports_from"] is None or row["estimate"] >= row["supports_from"], row["claim"]
            assert row["supports_to"] is None or row["estimate"] <= row["supports_to"], row["claim"]
