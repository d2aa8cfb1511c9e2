"""`fit_power_law`: scaling laws of one data set and arch, and the exponent of its chains (Appendix M of paper `depth`).

Reads the collected table `metrics`, and where there are chains the collected `chain` and the data set's card, whose
`bayes_risk` is the known least risk. Writes `fits` and `fitted`, `betas` and `fitted_chain`; the latter two are empty
without chains.
"""

from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import read_table, write_table
from jumpboard.schemas.betas import BETAS
from jumpboard.schemas.card import CARD
from jumpboard.schemas.chain import CHAIN
from jumpboard.schemas.fits import FITS
from jumpboard.schemas.fitted import FITTED
from jumpboard.schemas.fitted_chain import FITTED_CHAIN
from jumpboard.schemas.metrics import METRICS
from jumpboard.theory.chain_records import chain_records
from jumpboard.theory.fit_records import fit_records


def body(job: Job) -> None:
    spec = job.params["fit"]
    metrics = read_table(job.inputs["metrics"], METRICS).to_pylist()
    draws = spec["resamples"], spec["permutations"]
    fits, fitted = fit_records(metrics, spec["checkpoints"], *draws)
    chain = read_table(job.inputs["chain"], CHAIN).to_pylist() if "chain" in job.inputs else []
    known = {row.get("bayes_risk") for row in read_table(job.inputs["card"], CARD).to_pylist()} - {None}
    betas, fitted_chain = chain_records(chain, known.pop() if known else None, *draws)
    job.seeds = tuple(sorted({row["seed"] for row in metrics}))
    for schema, rows in ((FITS, fits), (FITTED, fitted), (BETAS, betas), (FITTED_CHAIN, fitted_chain)):
        write_table(job.outputs[schema.name], schema, rows, job.provenance())


if __name__ == "__main__":
    run_stage("fit_power_law", body)
