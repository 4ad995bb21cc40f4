# Both targets need only python3 (3.11 or newer) and make; they install into .venv in this folder.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test formats clean

demo: build/dev/demo.installed
	$(BIN)/streamsieve demo

test: build/dev/test.installed
	$(BIN)/pytest $(PYTEST_FLAGS)

# docs/formats.md, of the formats themselves; a test fails where it is stale.
formats: build/dev/demo.installed
	$(BIN)/streamsieve list --markdown > build/formats.md
	mv build/formats.md docs/formats.md

# The stamps stand beside the links that are the editable install: remove build/ and both are made anew.
build/dev/demo.installed: GROUP =
build/dev/test.installed: GROUP = --group test
build/dev/demo.installed build/dev/test.installed: pyproject.toml hatch_build.py $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'  # dependency groups
	$(BIN)/python -m pip install --quiet --editable '.[openai,serve]' $(GROUP)
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "streamsieve needs Python 3.11 or newer: make PYTHON=/path/to/it"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

clean:
	rm -rf $(VENV) .venvs build dist
