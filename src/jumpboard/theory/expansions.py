"""The nets that a certificate is about, as they were kept, and what they lose by bounded losses.

    old        the reference f                         board     the jumpboard f~ of a kind
    arm        the net that training from it ended with, or nothing where it diverged

The fallback is applied to each loss by itself: f+ is the arm's net where it is no worse than f~ on training samples.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from jumpboard.artefacts.checkpoints import read_checkpoint_header, read_member
from jumpboard.data.samples import Tensors
from jumpboard.errors import InputError
from jumpboard.expansion.insertion import Inserted, insert, site_groups
from jumpboard.expansion.reference import Reference
from jumpboard.measure.moments import FloatArray
from jumpboard.nets.base import Leaves, Net, check_leaves
from jumpboard.theory.losses import batch_losses
from jumpboard.theory.weight_class import WeightClass, capped, largest_norms, smallest_powers
from jumpboard.training.parameters import Layout

ARMS = ("jumpboard_all", "jumpboard_block")
PER_SAMPLE = ("test", "fresh")


@dataclass(frozen=True)
class Kept:
    """Members [G, ...] of one name; `there` [G] tells which were kept, those that are not lose NaN."""

    leaves: Leaves
    there: np.ndarray


@dataclass(frozen=True)
class Losses:
    """Of one loss: means [G] by split, and for those of `PER_SAMPLE` the value [G, n] of every sample."""

    mean: Mapping[str, FloatArray]
    sample: Mapping[str, FloatArray]


@dataclass(frozen=True)
class Group:
    """All expansions at `sites` of one shape: their net, and the kept members by name. Member s G + g is that of
    sites[s] and the g-th seed."""

    net: Inserted
    kept: Mapping[str, Kept]
    sites: Sequence[int]
    source: str

    def weights(self, member: int, caps: Mapping[str, float] | None, name: str) -> WeightClass:
        """The class of one member's jumpboards and of the nets trained from them: that of `caps`, or without any the
        smallest of powers of two. Raises InputError, with the member's `name`, for a net above its caps."""
        own = [one.leaves for one in self.kept.values() if one.there[member]]
        layers = (self.net.layers() or {}).values()
        norms = largest_norms([[leaves[leaf][member].cpu().numpy() for leaf in layer] for leaves in own for layer in layers])
        return smallest_powers(norms) if caps is None else capped(caps, norms, f"{self.source}: {name}")


def read_groups(path: Path, net: Net, reference: Reference, kinds: Sequence[str]) -> Iterator[Group]:
    """What an expansion kept, group of sites by group, with jumpboards of all `kinds`; raises InputError as
    `read_kept` does."""
    for sites in site_groups(net):
        expanded = insert(net, reference.leaves, sites, reference.seeds)[0]
        names = [*(f"jumpboard_{kind}" for kind in kinds), *ARMS]
        kept = {name: read_kept(path, expanded, reference, sites, name) for name in names}
        lacking = [name for name in names if name not in ARMS and not kept[name].there.all()]
        if lacking:
            raise InputError(f"{path}: lacks {lacking[0]} at some of the sites {sites}; accepted: one of every seed at each")
        yield Group(expanded, kept, sites, str(path))


def read_kept(path: Path, net: Inserted, reference: Reference, sites: Sequence[int], name: str) -> Kept:
    """The nets `site_<i>/<name>` of all sites and seeds: member s G + g is that of sites[s] and the g-th seed.

    Raises InputError, naming the file, for members that are damaged, of another net or of another reference, and where
    the file keeps no nets.
    """
    records = read_checkpoint_header(path)["checkpoints"]
    if not records:
        raise InputError(f"{path}: keeps no nets; accepted: those of an expansion with keep_nets: true")
    members = []
    for site in sites:
        for seed, digest in zip(reference.seeds, reference.digests, strict=True):
            place = f"seed_{seed}/site_{site}/{name}"
            if place in records and records[place]["parent"] != digest:
                raise InputError(f"{path}: {place} does not descend from the reference {digest[:12]} of its seed")
            members.append(read_member(path, seed, f"site_{site}/{name}") if place in records else None)
            if members[-1] is not None:
                check_leaves(net, members[-1], f"{path}: {place}")
    shapes = Layout.of(net).shapes
    blank = {leaf: np.full(shape, np.nan, dtype=np.float32) for leaf, shape in shapes.items()}
    blank[f"{net.name}.site"] = np.array([sites[0]], dtype=np.float32)  # any: the net is not there
    whole = [blank if member is None else member for member in members]
    device = next(iter(reference.leaves.values())).device
    leaves = {leaf: torch.from_numpy(np.stack([member[leaf] for member in whole])).to(device) for leaf in shapes}
    return Kept(leaves, np.array([member is not None for member in members]))


def evaluate(net: Net, leaves: Leaves, data: Mapping[str, Tensors], names: Sequence[str]) -> dict[str, Losses]:
    """By loss, what G members lose on all samples of each split; float64 from the logits on."""
    members = len(next(iter(leaves.values())))
    means: dict[str, dict[str, FloatArray]] = {name: {} for name in names}
    samples: dict[str, dict[str, FloatArray]] = {name: {} for name in names}
    for split, part in data.items():
        sums = {name: np.zeros(members) for name in names}
        kept = {name: np.empty((members, len(part[1]))) for name in names if split in PER_SAMPLE}
        for place, values in batch_losses(net, leaves, part, names):
            for name, one in values.items():
                sums[name] += one.sum(axis=1)
                if name in kept:
                    kept[name][:, place] = one
        for name in names:
            means[name][split] = sums[name] / len(part[1])
            samples[name] |= {split: kept[name]} if name in kept else {}
    return {name: Losses(means[name], samples[name]) for name in names}


def repeated(losses: Losses, times: int) -> Losses:
    """The same nets `times` times over, as beside each site."""
    return Losses(
        {split: np.tile(one, times) for split, one in losses.mean.items()},
        {split: np.tile(one, (times, 1)) for split, one in losses.sample.items()},
    )
