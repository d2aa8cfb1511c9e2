"""The nets that certificates are about, as `expand_depth` kept them: the jumpboards f~ of each kind, and the nets that
training from a jumpboard ended with, which are not there where it diverged."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from jumpboard.artefacts.checkpoints import read_checkpoint_header, read_member
from jumpboard.errors import InputError
from jumpboard.expansion.insertion import Inserted, insert, site_groups
from jumpboard.expansion.reference import Reference
from jumpboard.nets.base import Leaves, Net, check_leaves
from jumpboard.theory.weight_class import WeightClass, capped, largest_norms, smallest_powers
from jumpboard.training.parameters import Layout

ARMS = ("jumpboard_all", "jumpboard_block")


@dataclass(frozen=True)
class Kept:
    """Members [G, ...] of one name; `there` [G] tells which were kept, those that are not lose NaN."""

    leaves: Leaves
    there: np.ndarray


@dataclass(frozen=True)
class Group:
    """All expansions at `sites` of one shape: their net, and the kept members by name. Member s G + g is that of
    sites[s] and the g-th seed."""

    net: Inserted
    kept: Mapping[str, Kept]
    sites: Sequence[int]
    source: str

    @property
    def leaf_names(self) -> tuple[str, ...]:
        return tuple(Layout.of(self.net).shapes)

    def weights(self, member: int, caps: Mapping[str, float] | None, name: str) -> WeightClass:
        """The class of one member's jumpboards and of the nets trained from them: that of `caps`, or without any the
        smallest of powers of two. Raises InputError, with the member's `name`, for a net above its caps."""
        own = [one.leaves for one in self.kept.values() if one.there[member]]
        layers = (self.net.layers() or {}).values()
        norms = largest_norms(
            [[leaves[leaf][member].cpu().numpy() for leaf in layer] for leaves in own for layer in layers]
        )
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
            raise InputError(
                f"{path}: lacks {lacking[0]} at some of the sites {sites}; accepted: one of every seed at each"
            )
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
