# make figures   install into .venv if needed, then rebuild every figure of the embedded default (CONFIG names overlays)
# make test      install into .venv if needed, then run the tests
# make soak      kill the smoke run 100 times at random moments, and compare what it ends with
# make test-slurm  run the smoke config on a SLURM cluster of one node, started for it; in a container, as root
# make adopt     take over results that were copied here, after checking them (CONFIG names overlays, if any)
# make release   rebuild, then write the released run, the README's table and the config's expected numbers
# make report    finish the run, then put it on one page, with all figures and plotted tables, into report.zip of its results
# PYTHON=python3.12 picks the interpreter; TORCH_INDEX=<address> takes torch from another index, such as the CPU builds
PYTHON ?= python3
TORCH_INDEX ?=
CONFIG ?=
BIN := .venv/bin
INSTALLED := .venv/installed
OVERLAY := $(if $(CONFIG),--configfile $(CONFIG))

.PHONY: figures test soak test-slurm adopt release report
.DELETE_ON_ERROR:

figures: $(INSTALLED)
	$(BIN)/snakemake --cores all $(OVERLAY)

test: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --dist loadfile

soak: $(INSTALLED)
	$(BIN)/python tests/soak.py

test-slurm: $(INSTALLED)
	$(BIN)/python tests/slurm/check.py

adopt: $(INSTALLED)
	$(BIN)/python -m jumpboard.artefacts.adopt config/config.yaml $(CONFIG)
	$(BIN)/snakemake --cores all --touch --forceall --quiet all $(OVERLAY)

release: $(INSTALLED)
	$(BIN)/snakemake --cores all
	$(BIN)/snakemake --cores all release

report: $(INSTALLED)
	$(BIN)/snakemake --cores all $(OVERLAY)
	$(BIN)/snakemake --cores all report $(OVERLAY)

$(INSTALLED): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14) and "Python 3.11 to 3.13 is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv --clear .venv
	$(if $(TORCH_INDEX),$(BIN)/pip install --index-url $(TORCH_INDEX) $$(grep -E '^torch(vision)?==' requirements.lock))
	$(BIN)/pip install -r requirements.lock
	$(BIN)/pip install --no-deps --no-build-isolation -e .
	touch $@
