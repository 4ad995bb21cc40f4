# The targets need only python3 (3.11 or newer) and make; they install into .venv in this folder.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo demo-local test formats clean

# Of PyPI's builds for this platform; installed before what asks for torch, so that no other is taken for it.
TORCH := torch==2.13.0

demo: build/dev/demo.installed
	$(BIN)/streamsieve demo

# A model of 135 million parameters on this machine; the first time, packages and 93 MB of weights are fetched.
demo-local: build/dev/local.installed
	$(BIN)/streamsieve demo-local

test: build/dev/test.installed
	$(BIN)/pytest $(PYTEST_FLAGS)

# docs/formats.md, of the formats themselves; a test fails where it is stale.
formats: build/dev/demo.installed
	$(BIN)/streamsieve list --markdown > build/formats.md
	mv build/formats.md docs/formats.md

# The stamps stand beside the links that are the editable install: remove build/ and both are made anew.
build/dev/demo.installed: INSTALLED = --editable '.[openai,serve]'
build/dev/local.installed: INSTALLED = --editable '.[openai,serve,local]'
build/dev/test.installed: INSTALLED = --editable '.[openai,serve,local,observe]' --group test
build/dev/local.installed build/dev/test.installed: FIRST = $(BIN)/python -m pip install --quiet $(TORCH)
build/dev/%.installed: pyproject.toml hatch_build.py $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'  # dependency groups
	$(FIRST)
	$(BIN)/python -m pip install --quiet $(INSTALLED)
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "streamsieve needs Python 3.11 or newer: make PYTHON=/path/to/it"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

clean:
	rm -rf $(VENV) .venvs build dist
