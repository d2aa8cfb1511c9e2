"""`resolve_config`: `config.json`, the config with the inventory and the claims' rules, as the run used them."""

from jumpboard.artefacts.job import Job, run_stage, write_json
from jumpboard.configuration.load import read_yaml, resolve


def body(job: Job) -> None:
    configuration = resolve(job.params["config"], read_yaml(job.inputs["datasets"]), read_yaml(job.inputs["claims"]))
    write_json(job.outputs["config"], configuration.as_json())


if __name__ == "__main__":
    run_stage("resolve_config", body)
