"""The selected net of an expansion: as training left it, or the jumpboard where that is better on training samples.

    f+ = trained if L_train(trained) <= L_train(jumpboard) else jumpboard

so that L_train(f+) <= L_train(jumpboard) in every case; a loss that is no number counts as worse. Paper `depth`,
Condition 2.
"""

import torch
from torch import Tensor

from jumpboard.measure.moments import FloatArray
from jumpboard.nets.base import Leaves


def selected(
    board: Leaves, trained: Leaves, board_loss: FloatArray, trained_loss: FloatArray
) -> tuple[dict[str, Tensor], list[str]]:
    """Leaves [G, ...] of the selected members, and each one's branch: trained or jumpboard; training losses [G]."""
    better = trained_loss <= board_loss
    leaves = {}
    for name, leaf in trained.items():
        keep = torch.from_numpy(better).to(leaf.device).view(-1, *[1] * (leaf.dim() - 1))
        leaves[name] = torch.where(keep, leaf, board[name])
    return leaves, ["trained" if one else "jumpboard" for one in better]
