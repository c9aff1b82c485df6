# `make demo` runs the whole loop on a shipped task; `make test` runs every check and test. Both set themselves up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
.PHONY: demo test check snapshots pages clean

demo: $(STAMP)
	$(BIN)/hiera-mcp demo

# What rests on clocks runs alone, all else side by side.
test: check
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not alone"
	$(BIN)/python -m pytest -q -m alone

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
