# Needs make and Python 3.11 or newer with its venv module; everything else goes into .venv.
# Another Python: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --progress-bar off
DEMO := demo-dataset
# Of PyTorch's wheels for Linux the default has CUDA and takes gigabytes; pip's own settings can name another index.
TORCH ?= torch

.DEFAULT_GOAL := help
.PHONY: help demo test test-torch lint format bench clean
.DELETE_ON_ERROR:

help:
	@echo "make demo        build a data set from examples/games, show it and check it"
	@echo "make test        run the tests (PYTEST_ARGS='-k board' for some of them)"
	@echo "make test-torch  install PyTorch and the other programs that read shards, and run their tests"
	@echo "make lint        ruff and mypy"
	@echo "make format      let ruff lay out the code"
	@echo "make bench       run the benchmarks"
	@echo "make clean       remove everything that make made"

# The stamps: made = an empty environment, runtime = what a user installs, dev = that and the tools.
# A changed pyproject.toml starts again from an empty environment.
$(VENV)/made: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is %d.%d: make PYTHON=..." % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@echo "making $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/runtime: $(VENV)/made
	@echo "installing goplanes"
	@$(PIP) --editable .
	@touch $@

$(VENV)/dev: $(VENV)/made
	@echo "installing goplanes and the development tools"
	@$(PIP) --editable ".[dev]"
	@touch $(VENV)/runtime $@

$(VENV)/torch: $(VENV)/dev
	@echo "installing $(TORCH) and the other programs that read shards"
	@$(PIP) "$(TORCH)" torchdata datasets duckdb pandas polars
	@touch $@

demo: $(VENV)/runtime
	$(BIN)/goplanes build quickstart --input examples/games --output $(DEMO) --overwrite --yes
	$(BIN)/goplanes inspect $(DEMO)
	$(BIN)/goplanes verify $(DEMO)

test: $(VENV)/dev
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-torch: $(VENV)/torch
	$(BIN)/python -m pytest $(PYTEST_ARGS) tests/test_torch_data.py tests/test_train_policy.py tests/test_readers.py

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/dev
	@set -e; for table in pipeline dedup load; do $(BIN)/python "benchmarks/bench_$$table.py"; done

clean:
	rm -rf $(VENV) $(DEMO) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
