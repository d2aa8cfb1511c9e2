"""Tables of expansions with known contents, whole rows that fit their schemas, for tests of claims and figures.

jumpboard    gain = `gain` sqrt(width) depth^-0.5 (steepest), 0 (controls), with noise of `se` that is also its error
step_gains   gain = predicted (1 - eta/(2 best)),   predicted = eta slope,  best step 0.1
expansion    gain of an arm = GAINS[arm] log2(width), trained_on included; transfer, fresh losses follow
widening     the same with arms widened, trained_on, scratch
chain        test loss 1/(1 + 0.2 k), signal 0.1 (1 + k)^-1.5, the last one not resolved
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from jumpboard.artefacts.tables import Schema
from jumpboard.schemas.chain import CHAIN
from jumpboard.schemas.expansion import EXPANSION
from jumpboard.schemas.jumpboard import JUMPBOARD
from jumpboard.schemas.step_gains import STEP_GAINS
from jumpboard.schemas.widening import WIDENING

Row = dict[str, Any]
Rows = list[Row]

SCHEMAS: dict[str, Schema] = {one.name: one for one in (JUMPBOARD, STEP_GAINS, EXPANSION, WIDENING, CHAIN)}
EMPTY = {"int64": 0, "float64": 0.0, "string": "", "bool": False}
NET = {"dataset": "d", "arch": "a"}
DIRECTIONS = ("steepest", "random", "orthogonal", "shuffled")
KINDS = ("train", "population")
STEPS = tuple(float(step) for step in np.geomspace(1e-3, 1.0, 7))
BEST = 0.1
GAINS = {"jumpboard_all": 0.05, "jumpboard_block": 0.02, "zero_all": 0.045, "zero_block": 0.015, "trained_on": 0.03}
LENGTH = 4


def blank(schema: Schema) -> Row:
    """A row of zeros, empty texts and nulls."""
    return {column.name: None if column.nullable else EMPTY[column.type] for column in schema.columns}


def nets(depths: Iterable[int], widths: Iterable[int], samples: int, seeds: Iterable[int]) -> Iterator[Row]:
    """The keys of every run."""
    for depth in depths:
        for width in widths:
            for seed in seeds:
                yield {**NET, "depth": depth, "width": width, "samples": samples, "seed": seed}


def jumpboards(runs: Iterable[Row], *, gain: float = 0.002, control: float = 0.0, se: float = 2e-4) -> Rows:
    generator, rows = np.random.default_rng(21), []
    for run in runs:
        size = run["width"] ** 0.5 * run["depth"] ** -0.5
        for site in range(run["depth"] + 1):
            for kind in KINDS:
                for direction in DIRECTIONS:
                    for split in ("train", "test"):
                        true = (gain if direction == "steepest" else control) * size
                        seen = true + float(generator.normal(0, se))
                        key = {"site": site, "jumpboard": kind, "direction": direction, "split": split}
                        told = {"gain": seen, "gain_se": se, "clipped_gain": seen, "bernstein_low": seen - 20 * se}
                        place = {"relative_site": site / run["depth"], "insert_form": "normed", "n": 10000}
                        rows.append(blank(JUMPBOARD) | run | key | told | place | {"eta": BEST, "bound": 4.3})
    return rows


def step_gains(runs: Iterable[Row], *, slope: float = 1.0, se: float = 0.05) -> Rows:
    """Predictions differ between sites by a factor of up to 5; `slope` is of realised on predicted gain at step 0;
    `se` is the error of the gain relative to its prediction."""
    generator, rows = np.random.default_rng(22), []
    for run in runs:
        for site in range(run["depth"] + 1):
            steepness = 0.1 * float(generator.uniform(0.2, 1.0)) * run["depth"] ** -0.5
            for kind in KINDS:
                for step, eta in enumerate(STEPS):
                    for split in ("train", "test"):
                        predicted = eta * steepness
                        gain = predicted * (slope - eta / (2 * BEST)) * float(np.exp(generator.normal(0, 0.01)))
                        key = {"site": site, "jumpboard": kind, "step": step, "split": split}
                        told = {"predicted_gain": predicted, "gain": gain, "gain_se": se * predicted, "n": 10000}
                        place = {"relative_site": site / run["depth"], "eta": eta, "relative_eta": eta}
                        rows.append(blank(STEP_GAINS) | run | key | told | place)
    return rows


def expansions(runs: Iterable[Row], *, sd: float = 0.005, **changed: float) -> Rows:
    """`changed` replaces gains of arms. From scratch at the middle site only; one in five trainings ends worse than its
    jumpboard on training samples."""
    generator, rows = np.random.default_rng(23), []
    gains = GAINS | {"scratch": -0.1} | changed
    for run in runs:
        depth, scale = run["depth"], float(np.log2(run["width"]))
        for arm, gain in gains.items():
            sites = {"trained_on": [-1], "scratch": [depth // 2]}.get(arm, list(range(depth + 1)))
            for site in sites:
                begun = arm.startswith(("jumpboard", "zero"))
                for kind in KINDS if begun else ("none",):
                    total = gain * scale + float(generator.normal(0, sd))
                    key = {"site": site, "arm": arm, "jumpboard": kind}
                    rows.append(blank(EXPANSION) | run | key | _arm(begun, total, fell_back=begun and site % 5 == 4))
                    rows[-1]["relative_site"] = None if site < 0 else site / depth
    return rows


def _arm(begun: bool, gain: float, *, fell_back: bool) -> Row:
    """Losses of one arm: with a jumpboard, gain = delta_r + delta_erm - transfer."""
    row: Row = {"insert_form": "normed", "branch": "jumpboard" if fell_back else "trained", "status": "trained"}
    row |= {"old_train_loss": 0.5, "old_validation_loss": 1.0, "old_test_loss": 1.0, "gain": gain}
    if begun:
        parts = {"delta_r_train": 0.003, "delta_r_test": 0.002, "delta_erm": 0.0 if fell_back else 0.2}
        row |= parts | {"transfer": parts["delta_r_test"] + parts["delta_erm"] - gain}
        row["new_train_loss"] = 0.5 - 0.003 - parts["delta_erm"]
        row["trained_train_loss"] = row["new_train_loss"] + 0.01 * fell_back
    for name in ("new", "trained"):
        row[f"{name}_test_loss"] = 1.0 - gain
        row[f"{name}_validation_loss"] = 1.0 - gain
    return row


def widenings(runs: Iterable[Row], *, sd: float = 0.005, **changed: float) -> Rows:
    generator, rows = np.random.default_rng(24), []
    for run in runs:
        for arm, gain in ({"widened": 0.06, "trained_on": 0.03, "scratch": -0.05} | changed).items():
            total = gain + float(generator.normal(0, sd))
            width = run["width"] * (1 if arm == "trained_on" else 2)
            losses = {"old_test_loss": 1.0, "new_test_loss": 1.0 - total, "gain": total}
            rows.append(blank(WIDENING) | run | {"arm": arm, "new_width": width, "status": "trained"} | losses)
    return rows


def chains(runs: Iterable[Row]) -> Rows:
    generator, rows = np.random.default_rng(25), []
    for run in runs:
        for k in range(LENGTH + 1):
            test = 1 / (1 + 0.2 * k) + float(generator.normal(0, 0.01))
            signal = 0.1 * (1 + k) ** -1.5 * float(np.exp(generator.normal(0, 0.1)))
            low = signal * 0.6 if k < LENGTH else -signal
            told = {"net_train_loss": test - 0.3, "net_test_loss": test, "net_fresh_loss": test + 0.01}
            told |= {"signal_feature_sq": signal, "signal_feature_sq_low": low, "signal_feature_sq_high": 2 * signal}
            names = {"status": "trained", "branch": "trained" if k else "none", "signal_split": "fresh"}
            rows.append(blank(CHAIN) | run | {"k": k, "site": run["depth"] // 2} | told | names)
    return rows


def planted(depths: Iterable[int], widths: Iterable[int], samples: int, seeds: Iterable[int]) -> dict[str, Rows]:
    """All tables of one grid."""
    runs = list(nets(depths, widths, samples, seeds))
    return {
        "jumpboard": jumpboards(runs),
        "step_gains": step_gains(runs),
        "expansion": expansions(runs),
        "widening": widenings(runs),
        "chain": chains(runs),
    }
