"""One expansion by one loss, and the class of nets that the paper's bounds on it are about.

The class is that of the expansion's jumpboards and of the nets trained from them; the old net need not be in it, as its
loss enters as it is. The fallback is applied to each loss by itself: f+ is the arm's net where it is no worse than the
jumpboard on training samples.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jumpboard.expansion.gains import Gain, paired_gain
from jumpboard.measure.moments import FloatArray
from jumpboard.theory.expansions import Losses
from jumpboard.theory.uniform import Complexity
from jumpboard.theory.weight_class import WeightClass

Row = dict[str, Any]


@dataclass(frozen=True)
class Class:
    """What the bounds of one expansion and loss are made of; `source` says where the class's caps are from."""

    complexity: Complexity
    weights: WeightClass
    source: str
    input_radius: float
    measured_norm_constant: float


@dataclass(frozen=True)
class Member:
    """Losses of the old net, of the jumpboards by kind, and of the arm's net, each of one `member` of them; `key` names
    the expansion, `delta` is what each of its limits may fail with, `bound` the loss's B."""

    key: Row
    member: int
    form: str
    old: Losses
    boards: Mapping[str, Losses]
    trained: Losses
    delta: float
    bound: float

    def mean(self, losses: Losses, split: str) -> float | None:
        return float(losses.mean[split][self.member]) if split in losses.mean else None

    def selected(self, kind: str) -> tuple[str, Losses]:
        """The branch, and the net that the fallback keeps: not one that lacks a loss."""
        board = self.boards[kind]
        better = self.trained.mean["train"][self.member] <= board.mean["train"][self.member]
        return ("trained", self.trained) if better else ("jumpboard", board)

    def gain(self, split: str, other: Losses) -> Gain:
        """Of another net over the old one, from paired losses."""
        return paired_gain(self._sample(self.old, split), self._sample(other, split))

    def _sample(self, losses: Losses, split: str) -> FloatArray:
        return losses.sample[split][self.member : self.member + 1]

    def delta_erm(self, kind: str) -> float:
        board, new = self.boards[kind].mean["train"], self.selected(kind)[1].mean["train"]
        return float(board[self.member] - new[self.member])
