# `make demo`, `make studio` and `make test` need nothing but Python 3.11+, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Exact versions that were tested together; every install takes them from here.
PIP_INSTALL := $(BIN)/pip install -q -c constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo studio test coverage lint docs bench audit net mutants release constraints clean

help:  ## this list
	@awk -F ':.*## *' '/^[a-z]+:.*##/ {printf "make %-12s %s\n", $$1, $$2}' Makefile

$(VENV)/.core: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) -e ".[learn]"
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt $(VENV)/.core
	@echo "Installing the development tools (once) ..."
	@$(PIP_INSTALL) -e ".[dev,plots,docs,torch]"
	@touch $@

$(VENV)/.studio: pyproject.toml constraints.txt $(VENV)/.core
	@$(PIP_INSTALL) -e ".[studio,excel]"
	@touch $@

# Flower's commands, which no module of ours imports: it excludes versions that we test with.
$(VENV)/.flower: tests/parties/flower.txt $(VENV)/.core
	@$(PYTHON) -m venv $(VENV)/flower && $(VENV)/flower/bin/pip install -q -r tests/parties/flower.txt
	@touch $@

$(VENV)/.release: pyproject.toml constraints.txt $(VENV)/.core
	@$(PIP_INSTALL) -e ".[release]"
	@touch $@

demo: $(VENV)/.core  ## a private metric on embedded data of students
	@$(BIN)/pairveil demo --out demo-out

studio: $(VENV)/.studio  ## the local web application: raw tables to a release and its report
	@$(BIN)/pairveil studio

test: $(VENV)/.dev  ## every test, doctests and docs blocks included
	$(BIN)/python -m tools.compile_loops
	$(BIN)/python -m pytest -n auto --dist worksteal

coverage: $(VENV)/.dev  ## nightly: the tests, and the branch coverage of each package
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=
	$(BIN)/python -m tools.package_coverage

lint: $(VENV)/.dev  ## style, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.dev  ## the site, links checked, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.dev  ## every benchmark, into benchmarks/results/
	$(BIN)/python -m benchmarks kappa --out benchmarks/results
	$(BIN)/python -m benchmarks utility --out benchmarks/results
	$(BIN)/python -m benchmarks speed --out benchmarks/results
	$(BIN)/python -m benchmarks scale --out benchmarks/results
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m pytest benchmarks/test_kernels.py -p no:xdist \
	  --benchmark-timer=time.process_time --benchmark-json=benchmarks/results/kernels.json
	$(BIN)/python -m benchmarks.page benchmarks/results docs/benchmarks.md

audit: $(VENV)/.dev  ## the privacy audit and the fuzz of foreign files at nightly size
	PAIRVEIL_NIGHTLY=1 NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/audit tests/fuzz tests/benchmarks tests/cli/test_learners.py tests/docs/test_site.py -n 2 --dist worksteal

net: $(VENV)/.dev  ## the same seeded scenarios on the reference commit and on this tree, compared field by field
	$(BIN)/python -m tools.net.compare

mutants: $(VENV)/.dev  ## nightly: every planted privacy error must be caught by the tests
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.mutants

release: $(VENV)/.release  ## wheel, source distribution and bill of materials, into dist/
	$(BIN)/python -m tools.build_release

constraints: $(VENV)/.dev $(VENV)/.release  ## write down the versions that are installed, after an update
	$(BIN)/pip freeze --exclude-editable | grep -E '^[A-Za-z0-9_.-]+==' > constraints.txt

clean:  ## remove everything that make made
	rm -rf $(VENV) site demo-out dist build .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache
