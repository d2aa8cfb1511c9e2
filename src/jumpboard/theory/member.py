"""One expansion by one loss, and the class of nets that the paper's bounds on it are about.

The class is that of the expansion's jumpboards and of the nets trained from them; the old net need not be in it, as its
loss enters as it is. The fallback is applied to each loss by itself: f+ is the arm's net where it is no worse than the
jumpboard on training samples.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jumpboard.expansion.gains import Gain
from jumpboard.theory.coverage import Covered
from jumpboard.theory.evaluation import Lost
from jumpboard.theory.losses import BoundedLoss
from jumpboard.theory.uniform import Complexity
from jumpboard.theory.weight_class import WeightClass

Row = dict[str, Any]


@dataclass(frozen=True)
class Class:
    """What the bounds of one expansion are made of, whose block is at `site`; `source` says where the caps of `weights`
    are from."""

    cover: Covered
    site: int
    weights: WeightClass
    source: str
    measured_norm_constant: float

    def complexity(self, loss: BoundedLoss) -> Complexity:
        return self.cover.complexity(self.site, self.weights, loss)


@dataclass(frozen=True)
class Member:
    """Losses of the old net, of the jumpboards by kind, and of the arm's net, each of one `member` of them; `key` names
    the expansion, `delta` is what each of its limits may fail with, `loss` what it is lost by."""

    key: Row
    member: int
    form: str
    old: Lost
    boards: Mapping[str, Lost]
    trained: Lost
    delta: float
    loss: BoundedLoss
    bound: float

    def mean(self, lost: Lost, split: str) -> float | None:
        """Null for a split that there is not."""
        return float(lost.mean[split][self.member]) if split in lost.mean else None

    def gain(self, lost: Lost, split: str) -> Gain:
        """Of a net over the old one, [1]."""
        gain, own = lost.gain[split], slice(self.member, self.member + 1)
        return Gain(gain.n, gain.mean[own], gain.variance[own])

    def selected(self, kind: str) -> tuple[str, Lost]:
        """The branch, and the net that the fallback keeps: never one whose loss is no number."""
        board = self.boards[kind]
        better = self.trained.mean["train"][self.member] <= board.mean["train"][self.member]
        return ("trained", self.trained) if better else ("jumpboard", board)

    def delta_erm(self, kind: str) -> float:
        board, new = self.boards[kind].mean["train"], self.selected(kind)[1].mean["train"]
        return float(board[self.member] - new[self.member])
