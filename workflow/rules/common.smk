# What the rules share: a job's parameters, code digest, files and resources, asked of the plan.
import json

from jumpboard.artefacts import paths
from jumpboard.configuration.devices import gpus_asked
from jumpboard.configuration.plan import COLLECTED, table_place

DEFAULT_RESOURCES = {"threads": 1, "mem_mb": 1000, "runtime": 10, "gpu": 0}


def run_root(wildcards):
    """The results folder: every stage's root."""
    return config["results"]


def job_params(rule, **fixed):
    """A function of wildcards -> the job's parameters as JSON."""
    return lambda wildcards: json.dumps(PLAN.params(rule, {**wildcards, **fixed}), sort_keys=True)


def job_code(rule, **fixed):
    """A function of wildcards -> the digest of the code that the job depends on."""
    return lambda wildcards: PLAN.code(rule, {**wildcards, **fixed})


def resource(rule, name):
    """What the config says a rule needs, or the default."""
    return config["resources"].get(rule, {}).get(name, DEFAULT_RESOURCES[name])


def gpus(rule):
    """A function of wildcards -> GPUs that one job asks for; 0 where it asks by `gres`."""
    return lambda wildcards: 0 if GRES else wanted_gpus(rule)


def gres(rule):
    """A function of wildcards -> the same GPUs in the words of a cluster that knows them only as `gres`, or None."""
    return lambda wildcards: f"{GRES}:{wanted_gpus(rule)}" if GRES and wanted_gpus(rule) else None


def wanted_gpus(rule):
    """GPUs of one job of a rule, here or where the executor sends it: none where the config's device is a CPU."""
    return gpus_asked(config["device"], resource(rule, "gpu"), elsewhere=workflow.non_local_exec)


def run_files():
    """Every file of the run that its manifest lists."""
    return [f"{config[artefact.place]}/{artefact.path}" for artefact in PLAN.artefacts()]


def collected_cells(wildcards):
    """The tables that a collected table is made of."""
    pattern = f"{config['results']}/{paths.cell_table(COLLECTED[wildcards.table], wildcards.table)}"
    cells = PLAN.cells(COLLECTED[wildcards.table], wildcards.dataset, wildcards.arch)
    return [paths.filled(pattern, cell.as_json()) for cell in cells]


def normalised_by(wildcards):
    """The splits whose moments an entry borrows, if it borrows any."""
    base = PLAN.configuration.datasets[wildcards.dataset].get("normalise_as")
    return {"base": f"{config['results']}/prepare_dataset/splits/{base}.parquet"} if base else {}


def weights_file(wildcards):
    """The file of weights that the cell's net begins with, if it begins with one."""
    return PLAN.weights(wildcards)


def fresh_rows(rule):
    """A function of wildcards -> the fresh samples of the data set, where the rule asks for them in this cell."""

    def rows(wildcards):
        fresh = f"{config['results']}/prepare_fresh/rows/{wildcards.dataset}.parquet"
        return [fresh] if "fresh" in PLAN.asked(rule, PLAN.cell(wildcards)) else []

    return rows


def fresh_argument(wildcards, input):
    """The stage's argument for its fresh samples, where it has any."""
    return [f"fresh={input.fresh}"] if input.fresh else []


def fitted_chains(wildcards):
    """The collected chains of the net, where it has any."""
    cells = PLAN.cells("expand_chain", wildcards.dataset, wildcards.arch)
    return [f"{config['results']}/collect/chain/{wildcards.dataset}/{wildcards.arch}.parquet"] if cells else []


def tables_of(table):
    """A collected or fitted table of every net that has it."""
    place = f"{config['results']}/{table_place(table)}"
    return [
        paths.filled(place, {"table": table, "dataset": dataset, "arch": arch}) for dataset, arch in PLAN.nets_of(table)
    ]
