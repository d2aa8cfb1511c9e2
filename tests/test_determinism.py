"""What the tiers promise of a second run: the same bytes with as many threads, and close numbers with another count.

That two runs of the whole pipeline agree byte for byte is tested in test_workflow, and on the smoke run by `make soak`.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from scipy.special import stdtrit

from calls import called
from conftest import Cell
from jumpboard.artefacts.tables import read_header

CLOSE = 1e-4
MEASURED = ("signal", "moments", "covariance", "correlations")
SPEC = {
    "checkpoints": ["final"], "splits": {"test": 60}, "blocks": 3, "pool": 30, "permutations": 1,
    "heat_maps": [0.5],
}  # fmt: skip
WIDE = {"resmlp": 128, "resnet": 8}
FEW = {"batch": 200, "steps": 6, "state_every": 6, "checkpoints": {}}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Stages set the threads of their process, which here is that of all tests."""
    yield
    torch.set_num_threads(1)


def trained(make_cell: Callable[..., Cell], family: str, root: str, threads: int) -> Cell:
    """A cell large enough for torch to share its sums out among threads."""
    cell = make_cell(family, root=root, width=WIDE[family], training=FEW)
    assert called("train_baseline", cell.arguments(threads))[0] == 0
    assert torch.get_num_threads() == threads
    return cell


def measured(cell: Cell, threads: int) -> dict[str, Path]:
    """The tables that the stage `measure_gradients` makes of a cell."""
    outputs = {name: cell.root / f"threads_{threads}" / f"{name}.parquet" for name in MEASURED}
    own = {name: value for name, value in cell.params.items() if name != "training"}
    params = json.dumps({**own, "measurement": SPEC})
    inputs = [f"base={cell.splits}", f"checkpoints={cell.outputs['checkpoints']}"]
    options = ["--root", str(cell.root), "--params", params, "--code", "c0de", "--threads", str(threads)]
    places = [f"{name}={path}" for name, path in outputs.items()]
    assert called("measure_gradients", [*options, "--inputs", *inputs, "--outputs", *places])[0] == 0
    assert torch.get_num_threads() == threads
    return outputs


def columns(path: Path) -> dict[str, Any]:
    """The columns of a table as arrays; values that are not there as NaN."""
    return dict(pq.read_table(path).to_pandas().items())


def assert_close(one: Path, other: Path) -> None:
    """Names and counts are equal, and numbers close, in units of the column's largest where they are differences of
    larger ones."""
    first, second = columns(one), columns(other)
    assert list(first) == list(second)
    for name, values in first.items():
        if values.dtype.kind == "f":
            size = max(np.abs(values[np.isfinite(values)]), default=0.0)
            np.testing.assert_allclose(values, second[name], rtol=CLOSE, atol=0.01 * CLOSE * size, err_msg=name)
        else:
            assert list(values) == list(second[name]), name


def assert_within_joint_intervals(one: Path, other: Path) -> None:
    """Means over seeds of all losses agree within joint two-sided 99 % t intervals, and nothing but numbers differs."""
    first, second = (pq.read_table(path).to_pandas() for path in (one, other))
    keys = [name for name in first if first[name].dtype.kind != "f"]
    assert first[keys].equals(second[keys])
    losses = [name for name in first if name.endswith("loss")]
    for checkpoint, rows in first.groupby("checkpoint")[losses]:
        others = second.groupby("checkpoint")[losses].get_group(checkpoint)
        spread = np.sqrt((rows.var() + others.var()) / len(rows))
        assert ((rows.mean() - others.mean()).abs() <= stdtrit(2 * len(rows) - 2, 0.995) * spread).all(), checkpoint


@pytest.mark.parametrize("family", ["resmlp", "resnet"])
def test_another_number_of_threads(family: str, make_cell: Callable[..., Cell]) -> None:
    """Sums in another order: measurements from the same parents are close, trainings agree as two samples of seeds do,
    and two runs on two threads are equal. Something random, or a race between threads, would show."""
    one = trained(make_cell, family, "one", 1)
    two, again = (trained(make_cell, family, name, 2) for name in ("two", "again"))
    assert two.contents() == again.contents()
    assert_within_joint_intervals(one.outputs["metrics"], two.outputs["metrics"])
    assert [read_header(cell.outputs["metrics"])["threads"] for cell in (one, two)] == [1, 2]
    for cell in (two, again):
        shutil.copy(one.outputs["checkpoints"], cell.outputs["checkpoints"])
    tables = measured(one, 1), measured(two, 2), measured(again, 2)
    for name in MEASURED:
        assert_close(tables[0][name], tables[1][name])
        assert tables[1][name].read_bytes() == tables[2][name].read_bytes()
