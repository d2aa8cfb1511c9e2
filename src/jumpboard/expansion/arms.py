"""The arms of one job: several trainings of one budget, one after the other, each of which a killed job takes up again.

Every arm keeps its state in a folder of its own under the job's, its last state too, so that a restarted job trains no
arm twice. All states are removed together, when the job's outputs are in place.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from torch import Tensor

from jumpboard.nets.base import Leaves, Net
from jumpboard.training.engine import Training, TrainingData
from jumpboard.training.recipe import Recipe
from jumpboard.training.resume import ResumeStore


class Arms:
    """Use as a context: the locks of all arms are held inside. `digest` identifies the job, as for `ResumeStore`;
    `tier` is the lowest determinism tier of the arms trained so far."""

    def __init__(self, folder: Path, digest: str, label: str) -> None:
        self.folder, self.digest, self.label = folder, digest, label
        self._stack = ExitStack()
        self._stores: list[ResumeStore] = []
        self.tier = "bytes"

    def __enter__(self) -> "Arms":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def train(
        self,
        name: str,
        net: Net,
        data: TrainingData,
        recipe: Recipe,
        seeds: Sequence[int],
        start: Leaves | None = None,
        free: Tensor | None = None,
    ) -> Training:
        """The finished training of one arm; `name` is unique in the job. `start` and `free` are those of `Training`."""
        training = Training(net, data, recipe, seeds, start=start, free=free)
        store = self._stack.enter_context(ResumeStore(self.folder / name, self.digest))
        self._stores.append(store)
        training.run(store, label=f"{self.label} {name}")
        store.save(*training.state.pack(), training.state.step)
        self.tier = self.tier if training.state.tier == "bytes" else training.state.tier
        return training

    def clear(self) -> None:
        """Remove all states; call when the last output is in place."""
        for store in self._stores:
            store.clear()
