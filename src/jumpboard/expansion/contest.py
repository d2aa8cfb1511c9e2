"""The arms of an expansion in depth, trained on the same samples in the same order, and what each attains.

    jumpboard_all, jumpboard_block    from the jumpboard of the kind train, all parameters or the new block alone
    zero_all, zero_block              the same from A = 0
    trained_on                        the old net for as many steps
    scratch                           a net with the block at the same site from the beginning, for the steps of both
                                      recipes together, under the first

All sites of one shape and all seeds are members of one training. Each expanded net is trained once; the fallback is
then applied against the jumpboard of each kind, for nets from A = 0 too. Paper `depth`, expansion training.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from jumpboard.artefacts.checkpoints import Member
from jumpboard.data.samples import Tensors
from jumpboard.expansion.arms import Arms
from jumpboard.expansion.choice import Choice
from jumpboard.expansion.fallback import NO_PARTS, decomposition, selected
from jumpboard.expansion.insertion import Inserted, block_entries, insert, site_groups, with_step
from jumpboard.expansion.losses import Losses, loss_columns, mean_losses
from jumpboard.expansion.outcomes import outcome
from jumpboard.nets.base import Leaves, Net
from jumpboard.training.engine import Training, TrainingData
from jumpboard.training.parameters import Layout, initial_members
from jumpboard.training.recipe import Recipe

Row = dict[str, Any]
Boards = Mapping[int, Mapping[str, Choice]]


@dataclass(frozen=True)
class Contest:
    """The members `leaves` [G, ...] of a net, one key and seed each, with all samples of each split in `data`. `recipe`
    is that of all arms, `scratch` that of nets from the beginning. Where there are `kept` nets, jumpboards and the nets
    trained from them are added as (seed, `site_<i>/jumpboard_<kind>` or `site_<i>/<arm>`), but those that diverged."""

    net: Net
    leaves: Leaves
    keys: Sequence[Mapping[str, Any]]
    data: Mapping[str, Tensors]
    recipe: Recipe
    scratch: Recipe
    arms: Arms
    kept: dict[tuple[int, str], tuple[int, Member]] | None = None

    @property
    def seeds(self) -> list[int]:
        return [key["seed"] for key in self.keys]

    def rows(self, boards: Boards, scratch_sites: Collection[int]) -> Iterator[Row]:
        """Rows of the table `expansion`; `boards` holds the jumpboards by site and kind."""
        old = mean_losses(self.net, self.leaves, self.data)
        training = self._trained("trained_on", self.net, self.recipe, self.seeds, self.leaves)
        yield from self._plain_rows("trained_on", [-1] * len(self.keys), training, old)
        for group in site_groups(self.net):
            yield from self._expanded(group, boards, old)
            yield from self._from_scratch([site for site in group if site in scratch_sites], old)

    def _trained(
        self, name: str, net: Net, recipe: Recipe, seeds: Sequence[int], start: Leaves, block_only: bool = False
    ) -> Training:
        data = TrainingData(*self.data["train"], *self.data["validation"])
        free = block_entries(net) if block_only and isinstance(net, Inserted) else None
        return self.arms.train(name, net, data, recipe, seeds, start=start, free=free)

    def _expanded(self, group: Sequence[int], boards: Boards, old: Sequence[Losses]) -> Iterator[Row]:
        net, zero = insert(self.net, self.leaves, group, self.seeds, self.recipe.caps)
        starts: dict[str, Leaves] = {}
        for kind in boards[group[0]]:
            choices = [boards[site][kind] for site in group]
            unit, eta = (torch.cat([getattr(one, name) for one in choices]) for name in ("unit", "eta"))
            starts[kind] = with_step(net, zero, unit, eta)
        begun = {kind: mean_losses(net, leaves, self.data) for kind, leaves in starts.items()}
        members = range(len(group) * len(self.keys))
        for kind, leaves in starts.items():
            self._keep(f"jumpboard_{kind}", group, 0, leaves, members)
        for arm, start in (("jumpboard", starts["train"]), ("zero", zero)):
            for part in ("all", "block"):
                name = f"{arm}_{part}"
                training = self._trained(
                    f"{name}_{group[0]}", net, self.recipe, self.seeds * len(group), start, part == "block"
                )
                ended = mean_losses(net, ended_leaves(training), self.data)
                if arm == "jumpboard":
                    alive = [member for member in members if training.state.alive[member]]
                    self._keep(name, group, training.state.step, ended_leaves(training), alive)
                for member, end in enumerate(ended):
                    g, site = member % len(self.keys), group[member // len(self.keys)]
                    for kind, board in begun.items():
                        branch, new = selected(board[member], end, not training.state.alive[member])
                        parts = decomposition(old[g], board[member], new) | {"jumpboard": kind, "branch": branch}
                        yield self._row(name, site, training, member, old[g], end, new) | parts

    def _keep(self, name: str, group: Sequence[int], step: int, leaves: Leaves, members: Iterable[int]) -> None:
        if self.kept is None:
            return
        for member in members:
            g, site = member % len(self.keys), group[member // len(self.keys)]
            own = {leaf: values[member].cpu().numpy() for leaf, values in leaves.items()}
            self.kept[self.seeds[g], f"site_{site}/{name}"] = (step, own)

    def _from_scratch(self, sites: Sequence[int], old: Sequence[Losses]) -> Iterator[Row]:
        if not sites:
            return
        flat = initial_members(self.net, self.seeds).to(self.data["train"][0])
        net, start = insert(self.net, Layout.of(self.net).leaves(flat), sites, self.seeds, self.scratch.caps)
        training = self._trained(f"scratch_{sites[0]}", net, self.scratch, self.seeds * len(sites), start)
        yield from self._plain_rows("scratch", [site for site in sites for _ in self.seeds], training, old)

    def _plain_rows(self, arm: str, sites: Sequence[int], training: Training, old: Sequence[Losses]) -> Iterator[Row]:
        """Rows of an arm that no jumpboard stands beside."""
        ended = mean_losses(training.net, ended_leaves(training), self.data)
        for member, (site, end) in enumerate(zip(sites, ended, strict=True)):
            row = self._row(arm, site, training, member, old[member % len(old)], end, end)
            yield row | NO_PARTS | {"jumpboard": "none", "branch": "trained"}

    def _row(self, arm: str, site: int, training: Training, member: int, old: Losses, end: Losses, new: Losses) -> Row:
        net = training.net
        return {
            **self.keys[member % len(self.keys)],
            "site": site,
            "arm": arm,
            "relative_site": site / net.depth if site >= 0 else None,
            "insert_form": net.insert_form if isinstance(net, Inserted) else "none",
            **outcome(training, member),
            **loss_columns("old", old),
            **loss_columns("trained", end),
            **loss_columns("new", new),
            "gain": old["test"] - new["test"],
        }


def ended_leaves(training: Training) -> Leaves:
    """The leaves that a training ended with."""
    return training.layout.leaves(training.state.flat)
