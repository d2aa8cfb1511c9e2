"""The nets that an expansion begins with: one checkpoint of every seed of a cell, side by side as the members of one
net."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from jumpboard.artefacts.checkpoints import read_checkpoint_header, read_member
from jumpboard.nets.base import Net, check_leaves
from jumpboard.training.parameters import Layout


@dataclass(frozen=True)
class Reference:
    """Members [G, ...] in the order of `seeds`, and the SHA-256 of each one's tensors as the file records it."""

    seeds: tuple[int, ...]
    leaves: dict[str, Tensor]
    digests: tuple[str, ...]


def read_reference(path: Path, net: Net, seeds: Sequence[int], checkpoint: str, device: torch.device) -> Reference:
    """The checkpoint of all seeds that have it: one that diverged, or whose loss never fell so far, has none. Where no
    seed has it there are no members and no leaves.

    Raises InputError, naming the file, for members that are damaged or of another net.
    """
    records = read_checkpoint_header(path)["checkpoints"]
    found = tuple(seed for seed in seeds if f"seed_{seed}/{checkpoint}" in records)
    members = []
    for seed in found:
        members.append(read_member(path, seed, checkpoint))
        check_leaves(net, members[-1], f"{path}: seed_{seed}/{checkpoint}")
    leaves = {
        name: torch.stack([torch.from_numpy(member[name]) for member in members]).to(device)
        for name in Layout.of(net).shapes
        if members
    }
    return Reference(found, leaves, tuple(records[f"seed_{seed}/{checkpoint}"]["sha256"] for seed in found))
