# One checkout, one virtual environment. `make install` needs only make and a Python of 3.11 or newer.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
UV_VERSION := 0.13.9

# The first Python that is new enough. Each is run, not only looked up: version managers leave shims that do nothing.
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
IS_NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in $(CANDIDATES); do $$python -c '$(IS_NEW_ENOUGH)' >/dev/null 2>&1 && echo $$python && break; done)

# An environment whose Python is gone, or that was moved here from another directory, does not work any more.
IS_WHOLE := grep -qF '$(CURDIR)/$(VENV)/' $(BIN)/pip && $(BIN)/python -c ''
BROKEN := $(shell test ! -e $(VENV)/python.stamp || { $(IS_WHOLE); } 2>/dev/null || echo broken)

.PHONY: force help install demo test test-all test-slow test-programs torture torture-long torture-page check lock screenshots clean

help:  ## Show these lines
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|' 2>/dev/null || sed -n 's/^\([a-z-]*\):.*  ## /  make \1: /p' $(MAKEFILE_LIST)

install: $(VENV)/project.stamp  ## Create .venv with the locked versions and both programs

demo: install  ## Open the console on a living sample system
	@$(BIN)/pgq-tui --demo

# Each has a PostgreSQL of its own. auto: two for each core, since most tests wait for other processes half of their time.
TEST_PROCESSES ?= auto

test: install  ## Run the default test suite
	$(BIN)/pytest -n $(TEST_PROCESSES) --dist worksteal

test-all: install  ## Run every test but the torture tests
	$(BIN)/pytest -n $(TEST_PROCESSES) --dist worksteal -m "not torture"

test-slow: install  ## Run what the default suite leaves out since it takes long: long rounds, large tables
	$(BIN)/pytest -n $(TEST_PROCESSES) --dist worksteal -m "slow and not (browser or pooler or ha or prometheus or go or torture)"

test-programs: install  ## Run the tests that need Chromium, PgBouncer, Prometheus or Go; what is missing is named and skipped
	$(BIN)/pytest -m "(browser or pooler or ha or prometheus or go) and not torture"

RUN ?=
TORTURED := tests/torture tests -m torture $(if $(RUN),-k "$(RUN)")

torture: install  ## Kill, stop and starve workers and servers: the short form of every run, or of RUN=name
	$(BIN)/pytest $(TORTURED) --timeout=600 $(if $(RUN),,-n 2 --dist worksteal)

torture-long: install  ## The long form of every run, or better of RUN=name; see tests/torture/README.md
	TORTURE=long $(BIN)/pytest $(TORTURED) --timeout=0

torture-page: install  ## Put the lines of the runs so far into docs/failure-modes.md
	$(BIN)/python -m tests.torture.page

check: install  ## Lint, format check, strict types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

screenshots: install  ## Draw the console's screens again as pictures
	$(BIN)/pgq-tui screenshots

lock: $(VENV)/python.stamp  ## Pin the newest allowed version of every dependency, for every supported Python and platform
	$(PIP) install --quiet uv==$(UV_VERSION)
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --upgrade --generate-hashes \
		--no-emit-index-url --no-header --quiet --output-file requirements.lock

clean:  ## Remove the virtual environment, caches and builds
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find pgq_core pgq_tui tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/python.stamp: $(if $(BROKEN),force)
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer was found. Install one, or name it: make install PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c '$(IS_NEW_ENOUGH)' || { echo "$(PYTHON) is not a working Python 3.11 or newer." >&2; exit 1; }
	@echo "Installing into $(VENV); the first time takes about half a minute."
	@$(PYTHON) -m venv --clear $(VENV) || { echo "Python's venv module is missing: on Debian and Ubuntu install python3-venv." >&2; rm -rf $(VENV); exit 1; }
	@touch $@

# --require-hashes: what is installed is, byte for byte, what was locked.
$(VENV)/lock.stamp: requirements.lock $(VENV)/python.stamp
	@$(PIP) install --quiet --require-hashes -r requirements.lock
	@touch $@

$(VENV)/project.stamp: pyproject.toml $(VENV)/lock.stamp
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
