"""All certificates of one group of expansions: rows of `routes` and `ladder`, each with its table's name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jumpboard.data.samples import Tensors
from jumpboard.expansion.reference import Reference
from jumpboard.nets.base import Net
from jumpboard.theory.coverage import covered, measured_norm_constant
from jumpboard.theory.evaluation import OLD, evaluate
from jumpboard.theory.expansions import ARMS, Group
from jumpboard.theory.ladder_rows import board_rung, pair_rungs, route_rungs
from jumpboard.theory.losses import LOSSES
from jumpboard.theory.member import Class, Member, Row
from jumpboard.theory.route_rows import route_rows


@dataclass(frozen=True)
class Given:
    """The reference nets of a cell, named by `cell`, and all samples that losses are over, fresh ones unseen; the
    `radius` of inputs and the `caps` of the training, if there are any; `losses` and `delta` of the config, and the
    number of `steps` of the jumpboards' grid."""

    cell: Mapping[str, Any]
    net: Net
    reference: Reference
    data: Mapping[str, Tensors]
    radius: float | None
    caps: Mapping[str, float] | None
    losses: Sequence[str]
    delta: float
    steps: int


def classes_of(given: Given, group: Group) -> list[Class | str]:
    """The class of each member's expansion, or why there is none. Raises InputError for a net above its caps."""
    seeds, sites, cover = given.reference.seeds, group.sites, covered(group.net, given.radius)
    if isinstance(cover, str):
        return [cover] * (len(sites) * len(seeds))
    constants = measured_norm_constant(given.net, cover.eps, given.reference.leaves, given.data["test"][0])
    source = "powers" if given.caps is None else "caps"
    return [
        Class(
            cover,
            site,
            group.weights(place * len(seeds) + g, given.caps, f"seed {seed}, site {site}"),
            source,
            float(constants[g]),
        )
        for place, site in enumerate(sites)
        for g, seed in enumerate(seeds)
    ]


def certificate_rows(given: Given, group: Group) -> Iterator[tuple[str, Row]]:
    """Rows of both tables."""
    classes = classes_of(given, group)
    keys = [{**given.cell, "seed": seed, "site": site} for site in group.sites for seed in given.reference.seeds]
    sizes = {split: len(y) for split, (_, y) in given.data.items()}
    found = evaluate(group, given.net, given.reference.leaves, given.data, given.losses)
    for loss, lost in found.items():
        boards = {name.removeprefix("jumpboard_"): one for name, one in lost.items() if name not in (OLD, *ARMS)}
        for member, (key, own) in enumerate(zip(keys, classes, strict=True)):
            for arm in ARMS:
                place, bound = {**key, "arm": arm, "loss": loss}, LOSSES[loss].bound(given.net.classes)
                nets = lost[OLD], boards, lost[arm]
                one = Member(place, member, group.net.insert_form, *nets, given.delta, LOSSES[loss], bound)
                routes = list(route_rows(one, own, sizes))
                rungs = [*route_rungs(one, own, routes, sizes["train"]), *pair_rungs(one)]
                yield from (("routes", row) for row, _ in routes)
                yield from (("ladder", row) for row in rungs)
            yield "ladder", board_rung(one, given.steps)
