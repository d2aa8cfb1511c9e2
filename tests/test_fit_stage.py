"""The stage `fit_power_law`, its figures and its claims on runs with planted laws: a wrong slice, a diverged net or a
seed that is left in would give an exponent as smooth as the right one."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumpboard.artefacts.job import parse
from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import Column, Schema, read_header, read_table, write_table
from jumpboard.claims.ledger import evaluate
from jumpboard.configuration.load import load, read_yaml
from jumpboard.configuration.plan import Plan
from jumpboard.configuration.validation import checkout
from jumpboard.errors import InputError
from jumpboard.figures.registry import FIGURES, figure_module
from jumpboard.figures.style import save
from jumpboard.schemas.betas import BETAS
from jumpboard.schemas.card import CARD
from jumpboard.schemas.chain import CHAIN
from jumpboard.schemas.claims import CLAIMS
from jumpboard.schemas.fits import FITS
from jumpboard.schemas.fitted import FITTED
from jumpboard.schemas.fitted_chain import FITTED_CHAIN
from jumpboard.schemas.metrics import METRICS
from jumpboard.stages import fit_power_law
from jumpboard.theory.chain_records import chain_records
from jumpboard.theory.fit_records import fit_records
from jumpboard.theory.power_law import excess_risk
from planted_expansions import blank
from test_configuration import changed
from test_configuration import refusal as refusal_of
from test_figures import assert_readable

Row = dict[str, Any]
NET = {"dataset": "mnist1d", "arch": "resmlp"}
DEPTHS, WIDTHS, SIZES, SEEDS = (1, 2, 4, 8, 16, 32), (8, 16), (4000,), (0, 1, 2, 3)
SCHEMAS = {schema.name: schema for schema in (FITS, FITTED, BETAS, FITTED_CHAIN)}
PROVENANCE = Provenance("c0de", "c0f1", {}, (0,), "bytes", 1, "cpu", {})
RISK = Column("bayes_risk", "float64", "nat", "least possible risk; null where it is not known", nullable=True)
WITH_RISK = (
    CARD if RISK.name in {column.name for column in CARD.columns} else replace(CARD, columns=(*CARD.columns, RISK))
)
BETA, R_STAR = 0.5, 0.3
LEDGER = read_yaml(checkout() / "config" / "claims.yaml")


def metrics(
    exponential: bool = False, sd: float = 0.005, depths: tuple[int, ...] = DEPTHS, widths: tuple[int, ...] = WIDTHS
) -> list[Row]:
    """A law in depth whose amplitude falls with width: exponent 0.7, or a rate of 0.2."""
    generator, rows = np.random.default_rng(4), []
    for depth in depths:
        for width in widths:
            for samples in SIZES:
                for seed in SEEDS:
                    fall = np.exp(-0.2 * depth) if exponential else depth**-0.7
                    loss = (0.3 + 8 / width * fall + 100 / samples) * np.exp(sd * generator.standard_normal())
                    cell = NET | {"depth": depth, "width": width, "samples": samples, "seed": seed}
                    told = {"checkpoint": "final", "status": "trained", "test_loss": loss}
                    rows.append(blank(METRICS) | cell | told | {"parameters": depth * width**2})
    return rows


FEW = metrics(depths=(1, 2), widths=(8,))


def chains(signal_beta: float = BETA, noise: float = 0.1) -> list[Row]:
    generator, rows = np.random.default_rng(5), []
    for seed in SEEDS:
        first = 0.5 * np.exp(0.05 * generator.standard_normal())
        for k, excess in enumerate(first * excess_risk(np.arange(9.0), 1.0, 2.0, BETA)):
            risk = R_STAR + excess * np.exp(0.003 * generator.standard_normal())
            signal = 0.02 * excess ** (1 + signal_beta) * (1 + noise * generator.standard_normal())
            cell = NET | {"depth": 4, "width": 16, "samples": 40000, "seed": seed, "k": k}
            losses = {"net_fresh_loss": risk, "net_test_loss": risk + 0.1, "signal_feature_sq": signal}
            rows.append(blank(CHAIN) | cell | losses | {"status": "trained"})
    return rows


def run(
    root: Path, nets: list[Row], chain: bool = True, risk: float | None = R_STAR, **changes: Any
) -> dict[str, list[Row]]:
    """The stage's tables, of planted inputs below `root`."""
    inputs = {"metrics": (METRICS, nets), "card": (WITH_RISK, [])}
    inputs["card"][1].append(blank(WITH_RISK) | {"dataset": "mnist1d", "split": "test", "bayes_risk": risk})
    inputs |= {"chain": (CHAIN, chains())} if chain else {}
    for name, (schema, rows) in inputs.items():
        write_table(root / f"{name}.parquet", schema, rows, PROVENANCE)
    spec = {"checkpoints": ["final"], "resamples": 60, "permutations": 20} | changes
    given = [f"{name}={root / name}.parquet" for name in inputs]
    made = [f"{name}={root / name}.out.parquet" for name in SCHEMAS]
    options = ["--root", str(root), "--params", json.dumps({**NET, "fit": spec}), "--code", "c0de"]
    fit_power_law.body(parse("fit_power_law", [*options, "--inputs", *given, "--outputs", *made]))
    return {name: read_table(root / f"{name}.out.parquet", schema).to_pylist() for name, schema in SCHEMAS.items()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Row]]]:
    root = tmp_path_factory.mktemp("fits")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_power_law, "CARD", WITH_RISK)
        return root, run(root, metrics())


Made = tuple[Path, dict[str, list[Row]]]


def only(rows: list[Row], **values: Any) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def test_planted_exponents_are_found_in_every_slice(made: Made) -> None:
    alphas = only(made[1]["fits"], variable="depth", form="power", parameter="alpha")
    assert {(row["width"], row["samples"]) for row in alphas} == {(w, m) for w in WIDTHS for m in SIZES}
    for row in alphas:
        assert row["estimate"] == pytest.approx(0.7, abs=0.08)
        assert row["preferred"] == "power"
        assert row["control_share"] <= 0.1
        assert (row["depth"], row["distinct"], row["seeds"], row["rows"]) == (0, 6, 4, 24)


def test_sizes_with_few_values_have_no_number(made: Made) -> None:
    rows = only(made[1]["fits"], variable="width")
    assert {row["form"] for row in rows} == {"power"}
    assert {(row["estimate"], row["reason"]) for row in rows} == {(None, "fewer than 5 different x")}
    assert not only(made[1]["fits"], variable="samples")
    joint = {row["parameter"]: row for row in only(made[1]["fits"], variable="joint", form="joint")}
    assert joint["alpha_depth"]["estimate"] is not None
    assert joint["alpha_width"]["reason"] == "fewer than 5 different x"


def test_fitted_values_and_residuals_are_of_their_nets(made: Made) -> None:
    rows = only(made[1]["fitted"], variable="depth")
    assert len(rows) == len(metrics())
    for row in rows:
        assert row["residual"] == pytest.approx(np.log(row["test_loss"] / row["fitted"]))
        assert row["held_out"] == (row["depth"] == 32)
        assert row["low"] < row["fitted"] < row["high"]
        assert row["predicted"] == pytest.approx(row["fitted"], rel=0.05)
    assert max(abs(row["residual"]) for row in rows) < 0.03


def test_both_betas_of_the_planted_chain_agree(made: Made) -> None:
    slope, curve = (only(made[1]["betas"], estimator=name)[0] for name in ("slope", "curve"))
    for row in (slope, curve):
        assert row["beta"] == pytest.approx(BETA, rel=0.1)
        assert row["low"] < row["beta"] < row["high"]
        assert row["exponent_linear"] == pytest.approx(1 / (3 * row["beta"]))
        assert row["exponent_sublinear"] == pytest.approx(1 / (5 * row["beta"]))
        assert (row["agreement"], row["r_star"], row["r_star_known"], row["risk_split"]) == (
            "agree",
            R_STAR,
            True,
            "fresh",
        )
        assert row["control_share"] <= 0.1
    points = made[1]["fitted_chain"]
    assert [row["k"] for row in points] == list(range(9))
    for row in points:
        assert row["fitted_excess"] == pytest.approx(row["excess"], rel=0.05)
        assert row["fitted_signal"] == pytest.approx(row["signal_feature_sq"], rel=0.5)


def test_a_diverged_net_and_chain_take_no_part() -> None:
    rows = metrics(widths=(8,))
    rows[0] |= {"status": "diverged", "test_loss": float("nan")}
    fits, fitted = fit_records(rows, ["final"], 20, 2)
    assert {row["rows"] for row in only(fits, variable="depth", width=8, samples=4000)} == {23}
    assert len(only(fitted, variable="depth")) == len(rows) - 1
    chain = [row | {"net_fresh_loss": float("nan")} if (row["seed"], row["k"]) == (2, 3) else row for row in chains()]
    betas, _ = chain_records(chain, R_STAR, 20, 2)
    assert {row["seeds"] for row in betas} == {3}


def test_test_losses_stand_in_for_fresh_ones_that_are_not_there() -> None:
    betas, points = chain_records([row | {"net_fresh_loss": None} for row in chains()], R_STAR + 0.1, 20, 2)
    fresh = chain_records(chains(), R_STAR, 20, 2)[1]
    assert {row["risk_split"] for row in betas} == {"test"}
    assert [row["excess"] for row in points] == pytest.approx([row["excess"] for row in fresh])


def test_without_chains_and_known_risk_the_rest_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_power_law, "CARD", WITH_RISK)
    tables = run(tmp_path, FEW, chain=False, risk=None, resamples=20, permutations=2)
    assert tables["betas"] == tables["fitted_chain"] == []
    assert tables["fits"]
    assert set(read_header(tmp_path / "fits.out.parquet")["parents"]) == {"metrics.parquet", "card.parquet"}


def test_an_unknown_least_risk_is_fitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_power_law, "CARD", WITH_RISK)
    tables = run(tmp_path, FEW, risk=None, resamples=40, permutations=2)
    assert {row["r_star_known"] for row in tables["betas"]} == {False}
    assert tables["betas"][0]["r_star"] == pytest.approx(R_STAR, abs=0.05)


# Figures

DRAWN = [name for name, entry in FIGURES.items() if entry.table in SCHEMAS]


def pictured(name: str, tables: Mapping[str, list[Row]]) -> Any:
    module = figure_module(name)
    return module.draw(module.plotted(tables[FIGURES[name].table], *NET.values()))


@pytest.mark.parametrize("name", DRAWN)
def test_figures_are_readable_and_alike_twice(name: str, made: Made, tmp_path: Path) -> None:
    module, pictures = figure_module(name), []
    for turn, order in enumerate((1, -1)):
        rows = module.plotted(made[1][FIGURES[name].table][::order], *NET.values())
        write_table(tmp_path / "t.parquet", module.SCHEMA, rows, PROVENANCE)
        figure = module.draw(read_table(tmp_path / "t.parquet", module.SCHEMA).to_pylist())
        assert_readable(figure)
        save(figure, tmp_path / f"{turn}.svg", tmp_path / f"{turn}.png", module.CAPTION)
        pictures.append((tmp_path / f"{turn}.svg").read_bytes())
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize("name", DRAWN)
def test_figures_of_nothing_say_so_and_of_other_nets_are_refused(name: str, made: Made) -> None:
    module = figure_module(name)
    assert_readable(module.draw(module.plotted([], *NET.values())))
    with pytest.raises(InputError, match="has no rows of d/other"):
        module.plotted(made[1][FIGURES[name].table], "d", "other")


@pytest.mark.parametrize("depths", [(4,), (1, 2, 4)], ids=str)
def test_figures_of_few_depths_are_readable(depths: tuple[int, ...]) -> None:
    fits, fitted = fit_records(metrics(depths=depths), ["final"], 20, 2)
    for name, rows in (("power_law_fits", fitted), ("extrapolation", fitted), ("rival_laws", fits)):
        assert_readable(pictured(name, {"fits": rows, "fitted": rows}))


def titled(name: str, tables: Mapping[str, list[Row]]) -> str:
    return " ".join(pictured(name, tables).get_suptitle().split())


def test_titles_say_what_was_planted(made: Made) -> None:
    tables = made[1]
    assert titled("two_betas", tables).startswith("The two estimates of β agree")
    assert titled("rival_laws", tables).startswith("A power law is preferred in 3 of 3 fits")
    assert titled("power_law_fits", tables).startswith("Power laws: \u03b1 in depth from 0.6")
    other = chain_records(chains(signal_beta=1.5), R_STAR, 60, 2)[1]
    assert titled("two_betas", {"fitted_chain": other}).startswith("The two estimates of β disagree")
    open_chain = chain_records(chains(signal_beta=-1.0), R_STAR, 60, 2)[1]
    assert titled("two_betas", {"fitted_chain": open_chain}).startswith("The two estimates of β cannot be compared")


# Claims


def verdicts(tables: Mapping[str, list[Row]], claim: str) -> list[Row]:
    entry = LEDGER[claim] | {"evaluated_on": [NET], "checkpoints": LEDGER[claim]["checkpoints"][:1]}
    runs = {tuple(row[key] for key in ("depth", "width", "samples")) for row in tables[entry["tables"][0]]}
    cells = [
        NET | dict(zip(("depth", "width", "samples"), cell, strict=True)) | {"seeds": list(SEEDS), "reference": "final"}
        for cell in sorted(runs)
    ]
    rows = evaluate({claim: entry}, {entry["tables"][0]: cells}, tables)
    write_ok(rows)
    return rows


def write_ok(rows: list[Row]) -> None:
    for row in rows:
        assert set(row) == {column.name for column in CLAIMS.columns}
        assert row["estimate"] is None or np.isfinite(row["estimate"])


def test_a_planted_power_law_is_preferred_and_an_exponential_contradicts_it(made: Made) -> None:
    supported = verdicts(made[1] | {"metrics": metrics()}, "power_law_preferred")
    assert [(row["samples"], row["verdict"]) for row in supported] == [(m, "supported") for m in SIZES]
    assert all(row["estimate"] > 4 for row in supported)
    rows = metrics(exponential=True, widths=(8,))
    fits, _ = fit_records(rows, ["final"], 20, 20)
    for row in verdicts({"metrics": rows, "fits": fits}, "power_law_preferred"):
        assert (row["verdict"], row["reason"]) == ("contradicted", "the form exponential is preferred")


def test_luck_is_not_called_a_power_law() -> None:
    flat = metrics(widths=(8,))
    noise = np.random.default_rng(0).standard_normal(len(flat))
    rows = [row | {"test_loss": 1 + 0.02 * n} for row, n in zip(flat, noise, strict=True)]
    fits, _ = fit_records(rows, ["final"], 20, 20)
    assert "supported" not in {
        row["verdict"] for row in verdicts({"metrics": rows, "fits": fits}, "power_law_preferred")
    }


def test_a_control_that_prefers_the_law_too_withdraws_it(made: Made) -> None:
    fits = [row | {"control_share": 0.2} for row in made[1]["fits"]]
    (row,) = verdicts({"metrics": metrics(), "fits": fits}, "power_law_preferred")
    assert row["verdict"] == "inconclusive"
    assert row["reason"].startswith("control not null: 20%")


@pytest.mark.parametrize(
    ("signal_beta", "verdict"), [(BETA, "supported"), (1.5, "contradicted"), (-1.0, "inconclusive")]
)
def test_verdicts_on_the_two_betas(signal_beta: float, verdict: str) -> None:
    chain = chains(signal_beta)
    betas, _ = chain_records(chain, R_STAR, 60, 20)
    (row,) = verdicts({"chain": chain, "betas": betas}, "two_betas_agree")
    assert row["verdict"] == verdict
    assert (row["estimate"] is None) == (verdict == "inconclusive")
    if verdict == "inconclusive":
        assert "slope at depth 4, width 16: beta is not positive" in row["reason"]


def test_a_removed_seed_is_named_and_a_table_without_the_net_is_said(made: Made) -> None:
    """Symptom of a ledger that claims n = 4 while rows are fewer."""
    chain = [row for row in chains() if row["seed"] != 2]
    betas, _ = chain_records(chain, R_STAR, 20, 2)
    (row,) = verdicts({"chain": chain, "betas": betas}, "two_betas_agree")
    assert (row["verdict"], row["missing"]) == ("not evaluated", "depth 4, width 16, samples 40000, seed 2")
    (row,) = verdicts({"chain": chains(), "betas": []}, "two_betas_agree")
    assert (row["verdict"], row["reason"]) == ("not evaluated", "the config fits no such law")


# What a config is told

BLOCK = {"dataset": "digits", "arch": "resnet_bn", "checkpoints": ["final"], "resamples": 200, "permutations": 20}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"arch": "resmlp"}, "config: fits[0] is of digits/resmlp, which the grid lacks; accepted: "),
        ({"checkpoints": ["step_3"]}, "config: fits[0] has checkpoint 'step_3'; accepted: those of trainings."),
        ({"resamples": 3}, "config: fits[0].resamples is 3; accepted: at least 20"),
        ({"seed": 3}, "key 'seed' in 'fits[0]' is not known"),
    ],
    ids=str,
)
def test_a_config_is_told_before_any_job_runs(change: Row, named: str) -> None:
    assert named in refusal_of(changed("fits", [BLOCK | change]))


def test_only_its_own_block_reruns_a_fit() -> None:
    """Resamples of one net are not those of another, and a name of a net is no parameter of the training."""
    plans = [Plan(load(changed("fits", [BLOCK | {"resamples": count}]))) for count in (100, 200)]
    keys = {"table": "fits", "dataset": "digits", "arch": "resnet_bn"}
    fits = [plan.params("fit_power_law", keys)["fit"] for plan in plans]
    assert [fit["resamples"] for fit in fits] == [100, 200]
    assert set(fits[0]) == {"checkpoints", "resamples", "permutations"}
    listed = {one.path for one in plans[0].artefacts() if one.rule == "fit_power_law"}
    assert listed == {f"fit_power_law/{table}/digits/resnet_bn.parquet" for table in SCHEMAS}
    drawn = {one.keys["figure"] for one in plans[0].artefacts() if one.rule == "draw_figure"}
    assert {"power_law_fits", "extrapolation", "rival_laws"} <= drawn
    assert "two_betas" not in drawn  # the config has no chains


def test_planted_rows_fit_their_schemas(tmp_path: Path) -> None:
    schemas: list[tuple[Schema, list[Row]]] = [(METRICS, metrics()), (CHAIN, chains())]
    for schema, rows in schemas:
        write_table(tmp_path / schema.name, schema, rows, PROVENANCE)
