# Targets of the pipeline: every figure, table and checkpoint of the config. The rules are in workflow/rules.
import sys
from pathlib import Path

import jumpboard
from jumpboard.configuration.devices import take_gres
from jumpboard.configuration.workflow import check_directory, open_run
from jumpboard.errors import InputError

try:
    check_directory(Path(workflow.basedir))
except InputError as error:
    sys.exit(f"error: {error}")


configfile: "config/config.yaml"


try:
    GRES = take_gres(config)
    PLAN = open_run(config, Path(workflow.basedir))
except InputError as error:
    sys.exit(f"error: {error}")


pathvars:
    results=config["results"],
    figures=config["figures"],
    logs=config["logs"],


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/training.smk"
include: "workflow/rules/measuring.smk"
include: "workflow/rules/expansion.smk"
include: "workflow/rules/certificates.smk"
include: "workflow/rules/fits.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/manifest.smk"
include: "workflow/rules/release.smk"
include: "workflow/rules/report.smk"


localrules:
    all,


rule all:
    input:
        "<results>/manifest.json",
        run_files(),
