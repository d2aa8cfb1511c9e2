"""`expand_depth`: a new block at every site of a cell's trained nets, its jumpboards, and what training then attains.

Writes the tables `jumpboard` (gains of chosen steps, and of controls), `step_gains` (predicted and realised gains of
all steps) and `expansion` (all arms), for every seed that has reached the reference checkpoint. Losses of the table
`expansion` are over all samples of each split but fresh, whose first half the jumpboards of the kind population are
made from. Where the config keeps nets, the checkpoints `site_<i>/jumpboard_<kind>` and, for arms that begin at a
jumpboard, `site_<i>/<arm>` descend from the reference; else the file holds none.
"""

from typing import Any

from jumpboard.artefacts.checkpoints import Member, write_checkpoints
from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import write_table
from jumpboard.data.samples import halves
from jumpboard.expansion.choice import Samples
from jumpboard.expansion.contest import Contest
from jumpboard.expansion.records import jumpboard_rows, step_rows
from jumpboard.expansion.search import Grid, search
from jumpboard.expansion.setting import open_setting
from jumpboard.schemas.expansion import EXPANSION
from jumpboard.schemas.jumpboard import JUMPBOARD
from jumpboard.schemas.step_gains import STEP_GAINS


def body(job: Job) -> None:
    one, spec = open_setting(job), job.params["expansion"]
    net, leaves, seeds, data = one.net, one.reference.leaves, one.reference.seeds, dict(one.data)
    keys = [{**one.cell, "seed": seed} for seed in seeds]
    scratch = {round(place * net.depth) for place in spec["scratch"]}

    rows: dict[str, list[dict[str, Any]]] = {"jumpboard": [], "step_gains": [], "expansion": []}
    kept: dict[tuple[int, str], tuple[int, Member]] = {}
    with one.arms as arms:
        if seeds:
            boards = {}
            samples, grid = Samples.of(data, spec["splits"]), Grid(**spec["steps"])
            for found in search(net, leaves, seeds, samples, grid, one.recipe.caps):
                rows["jumpboard"] += jumpboard_rows(keys, found)
                rows["step_gains"] += step_rows(keys, found)
                boards[found.place.site] = {kind: found.jumpboard(kind) for kind in found.checks}
            if "fresh" in data:
                data["fresh"] = halves(data["fresh"])[1]
            contest = Contest(
                net, leaves, keys, data, one.recipe, one.scratch, arms, kept if spec["keep_nets"] else None
            )
            rows["expansion"] += contest.rows(boards, scratch)
        job.tier = arms.tier
        for schema in (JUMPBOARD, STEP_GAINS, EXPANSION):
            write_table(job.outputs[schema.name], schema, rows[schema.name], job.provenance())
        ancestors = dict(zip(seeds, one.reference.digests, strict=True))
        write_checkpoints(job.outputs["checkpoints"], kept, ancestors, job.provenance(), chained=False)
        arms.clear()


if __name__ == "__main__":
    run_stage("expand_depth", body)
