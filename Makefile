# Two commands need nothing but Python 3.11+, make and git: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint docs bench audit clean

$(VENV)/.core: pyproject.toml
	@echo "Setting up $(VENV) (once) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install -q -e .
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.core
	@echo "Installing the development tools (once) ..."
	@$(BIN)/pip install -q -e ".[dev,plots,docs]"
	@touch $@

demo: $(VENV)/.core  ## a private metric on embedded patients data
	@$(BIN)/pairveil demo --out demo-out

test: $(VENV)/.dev  ## every test, doctests and docs blocks included
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(VENV)/.dev  ## style, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.dev  ## the site, links checked, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.dev  ## every benchmark, into benchmarks/results/
	$(BIN)/pairveil bench kappa --out benchmarks/results
	$(BIN)/pairveil bench utility --out benchmarks/results
	$(BIN)/pairveil bench speed --out benchmarks/results
	$(BIN)/pairveil bench scale --out benchmarks/results
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m pytest benchmarks/test_kernels.py -p no:xdist \
	  --benchmark-timer=time.process_time --benchmark-json=benchmarks/results/kernels.json
	$(BIN)/python -m pairveil.experiments.bench_page benchmarks/results docs/benchmarks.md

audit: $(VENV)/.dev  ## the privacy audit and the fuzz of foreign files at nightly size
	PAIRVEIL_NIGHTLY=1 NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/audit tests/fuzz -n 2 --dist worksteal

clean:
	rm -rf $(VENV) site demo-out .pytest_cache .mypy_cache .ruff_cache
