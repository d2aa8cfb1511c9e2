"""A bound that no net could exceed holds always: it must not count as support, and neither must luck against it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from scipy.stats import binom

from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import write_table
from jumpboard.claims.ledger import evaluate
from jumpboard.claims.route import binomial_tail
from planted_certificates import SCHEMAS, ladders, not_applicable, routes
from planted_expansions import NET, Rows, nets

LEDGER: dict[str, Any] = yaml.safe_load((Path(__file__).parents[1] / "config/claims.yaml").read_text())
CLAIMS = ("route_a", "route_b")
DEPTHS, WIDTHS, SEEDS, SAMPLES = (1, 2), (2, 4), (0, 1, 2), 4000


def runs() -> Rows:
    return list(nets(DEPTHS, WIDTHS, SAMPLES, SEEDS))


def judged(claim: str, rows: Rows) -> dict[str, Any]:
    entry = LEDGER[claim] | {"evaluated_on": [NET]}
    cell = {**NET, "samples": SAMPLES, "seeds": list(SEEDS), "reference": "init"}
    cells = [cell | {"depth": depth, "width": width} for depth in DEPTHS for width in WIDTHS]
    (row,) = evaluate({claim: entry}, {"routes": cells}, {"routes": rows})
    return row


def changed(rows: Rows, update: dict[str, Any], **labels: Any) -> Rows:
    return [row | update if all(row[key] in one for key, one in labels.items()) else row for row in rows]


def test_planted_rows_fit_their_schemas(tmp_path: Path) -> None:
    provenance = Provenance("0", "0", {}, SEEDS, "bytes", 1, "cpu", {})
    tables = {"routes": routes(runs()), "ladder": ladders(runs(), covered=False)}
    for name, rows in tables.items():
        write_table(tmp_path / name, SCHEMAS[name], rows, provenance)


@pytest.mark.parametrize("claim", CLAIMS)
def test_planted_tables_get_their_verdict(claim: str) -> None:
    row = judged(claim, routes(runs()))
    assert (row["verdict"], row["estimate"]) == ("supported", pytest.approx(0.3 if claim == "route_a" else 0.15))
    assert row["control_share"] == 0
    row = judged(claim, routes(runs(), margin=-0.5))
    assert row["verdict"] == "inconclusive"
    assert row["reason"].startswith("vacuous")
    row = judged(claim, routes(runs(), above=1e-6))
    assert (row["verdict"], row["reason"]) == ("contradicted", "12 of 12 nets are violated, at a rate of at most 0.2")


@pytest.mark.parametrize("claim", CLAIMS)
def test_bounds_that_promise_nothing_settle_nothing_whatever_they_bound(claim: str) -> None:
    for above in (-0.1, 0.5):
        row = judged(claim, routes(runs(), above=above, failure=0.4))
        assert (row["verdict"], row["reason"].split(":")[0]) == ("inconclusive", "vacuous")


def test_as_many_violations_as_are_stated_do_not_contradict() -> None:
    """12 nets, each violated with probability 0.2 at most: six of them have probability 0.02, seven 0.004."""
    for seeds, cells, verdict in ((SEEDS, (1,), "supported"), ((0, 1), (1, 2), "contradicted")):
        violated = {"outcome": "violated", "holds": False}
        rows = changed(routes(runs()), violated, seed=seeds, depth=cells)
        assert judged("route_a", rows)["verdict"] == verdict
    assert binomial_tail(6, 12, 0.2) == pytest.approx(binom.sf(5, 12, 0.2))
    assert binomial_tail(6, 12, 0.2) > 0.01 > binomial_tail(7, 12, 0.2)
    assert binomial_tail(0, 12, 0.2) == 1


def test_a_net_counts_as_violated_from_half_of_its_expansions_on() -> None:
    violated = {"outcome": "violated", "holds": False}
    rows = changed(routes(runs()), violated, arm=["jumpboard_all"], route=["A"])
    assert judged("route_a", rows)["verdict"] == "contradicted"
    few = changed(routes(runs()), violated, arm=["jumpboard_all"], loss=["brier"])
    row = judged("route_a", few)
    assert row["verdict"] == "supported"
    assert "expansions that are violated: 30" in row["intervals"]


def test_support_takes_all_seeds_of_one_cell() -> None:
    vacuous = {"informative": False}
    one = changed(routes(runs()), vacuous, depth=[2])
    one = changed(one, vacuous, width=[4])
    assert judged("route_b", one)["verdict"] == "supported"
    assert judged("route_b", changed(one, vacuous, seed=[1]))["verdict"] == "inconclusive"


def test_a_way_back_that_is_promised_a_gain_withdraws_the_verdict() -> None:
    """Half of the expansions are promised a gain, the other half a loss that is as sure."""
    rows = changed(routes(runs()), {"right_hand_side": 0.9 + 2.0, "informative": False}, arm=["jumpboard_block"])
    row = judged("route_a", rows)
    assert (row["verdict"], row["control_share"]) == ("inconclusive", 1.0)
    assert "by the way back as well" in row["reason"]


def test_nets_that_no_route_covers_are_not_judged() -> None:
    row = judged("route_a", not_applicable(routes(runs())))
    assert row["verdict"] == "not evaluated"
    assert "undefined" in row["missing"]
