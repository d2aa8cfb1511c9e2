"""The fallback, and the parts that a gain is made of.

With `f` the old net, `f~` the jumpboard, and `f+` the selected net: what training ended with, or the jumpboard where
that is worse on training samples, or where training diverged (Condition 2):

    Delta_R = L(f) - L(f~)      Delta_ERM = L_train(f~) - L_train(f+) >= 0
    tau = (L_test - L_train)(f+) - (L_test - L_train)(f~)
    L_test(f+) = L_test(f) - Delta_R^test - Delta_ERM + tau      exactly

Paper `depth`, expansion training.
"""

from typing import Any

from jumpboard.expansion.losses import Losses


def selected(board: Losses, trained: Losses, diverged: bool) -> tuple[str, Losses]:
    """The branch, `trained` or `jumpboard`, and the losses of the selected net."""
    better = not diverged and trained["train"] <= board["train"]
    return ("trained", trained) if better else ("jumpboard", board)


def decomposition(old: Losses, board: Losses, new: Losses) -> dict[str, Any]:
    """Columns of the gain's parts; the representational gain is null on a split that is not there."""
    gains = {split: old[split] - board[split] for split in old}
    return {
        **{f"delta_r_{split}": gains.get(split) for split in ("train", "test", "fresh")},
        "delta_erm": board["train"] - new["train"],
        "transfer": (new["test"] - new["train"]) - (board["test"] - board["train"]),
    }


NO_PARTS = dict.fromkeys(("delta_r_train", "delta_r_test", "delta_r_fresh", "delta_erm", "transfer"))
