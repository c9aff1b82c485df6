# `make demo` runs the whole loop on a shipped task; `make test` runs every check and test. Both set themselves up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Tests that measure times or count processes; they run alone, all others side by side.
ALONE := tests/exploits tests/faults tests/flow tests/honest tests/unit/judge

.PHONY: demo test check snapshots pages clean

demo: $(STAMP)
	$(BIN)/hiera-mcp demo

test: check
	$(BIN)/python -m pytest -q -n 2 --dist worksteal $(ALONE:%=--ignore=%)
	$(BIN)/python -m pytest -q $(ALONE)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/pyright

$(STAMP): pyproject.toml constraints.txt scripts/setup.sh
	@PYTHON=$(PYTHON) VENV=$(VENV) sh scripts/setup.sh
	@touch $(STAMP)

snapshots: $(STAMP)
	HIERA_UPDATE_SNAPSHOTS=1 $(BIN)/python -m pytest -q tests/unit/server

pages: $(STAMP)
	$(BIN)/python scripts/readme_tools.py
	$(BIN)/python scripts/reference_pages.py
	$(BIN)/python scripts/planning_tables.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache
