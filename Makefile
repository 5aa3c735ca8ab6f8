# Two commands do everything: `make demo` and `make test`. Each sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 7377
DATA ?= memorywall-data

.DEFAULT_GOAL := help
.PHONY: help demo serve test test-processes test-faults test-others test-postgres on-both check bench bench-recall chaos docs clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(VENV)/.runtime: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.test: $(VENV)/.runtime
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

demo: $(VENV)/.runtime ## Run an agent, kill it, see it go on; FOLDER=... for other files
	$(BIN)/python examples/demo.py $(FOLDER)

serve: $(VENV)/.runtime ## Start the server on PORT with the data in DATA
	$(BIN)/memorywall serve --data $(DATA) --port $(PORT) --dev

check: $(VENV)/.test ## Lint, types, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The tests that start processes wait more than they compute, so they run beside the others, and so
# do those that run on PostgreSQL as well: what they wait for is the database.
PROCESSES := tests/cli
# These have the least to do, so others go with them.
FAULTS := tests/faults tests/history tests/recall tests/running
# Commands that ask a server as any client does are not run on both, nor is what needs both at once.
ON_BOTH_ALWAYS := tests/http tests/test_entries.py tests/test_load_context.py \
	$(wildcard tests/test_sdk*.py tests/test_verify*.py tests/test_worker*.py)
# These take too long on PostgreSQL to be run each time; `make chaos` runs them.
ON_BOTH_AT_LENGTH := tests/work tests/recall tests/running tests/oracle \
	$(addprefix tests/cli/test_,administration.py serve.py transfer.py verify.py workflow.py)
ON_BOTH := $(ON_BOTH_ALWAYS) $(ON_BOTH_AT_LENGTH)
# They are about PostgreSQL whatever the others run on, so that once is enough.
OF_POSTGRES := $(wildcard tests/test_postgres*.py tests/test_storage_postgres*.py)

test: check ## Run every test, on SQLite and on PostgreSQL
	$(BIN)/python tests/support/browser.py
	$(MAKE) --jobs 4 test-processes test-faults test-others test-postgres

test-processes:
	$(BIN)/python -m pytest $(PROCESSES)

test-faults:
	$(BIN)/python -m pytest $(FAULTS)

test-others:
	$(BIN)/python -m pytest $(addprefix --ignore=,$(PROCESSES) $(FAULTS) $(OF_POSTGRES))

test-postgres:
	$(BIN)/python -m pytest --store postgres $(ON_BOTH_ALWAYS) $(OF_POSTGRES)

on-both: # What runs on both stores
	@echo $(ON_BOTH)

bench: $(VENV)/.test ## Measure beside a raw ASGI app and the reference server; STORE=postgres ARGS="--help"
	$(BIN)/python -m benchmarks $(if $(STORE),--store $(STORE)) $(ARGS)

# DATA is conversations here, where it is given; for the server it is a directory with a default.
bench-recall: $(VENV)/.test ## Measure how well and how fast recall finds; DATA=FILE ARGS="--help"
	$(BIN)/python -m benchmarks.recall $(if $(filter-out file,$(origin DATA)),$(DATA)) \
		$(if $(STORE),--store $(STORE)) $(ARGS)

chaos: $(VENV)/.test ## The long version of the fault tests
	MEMORYWALL_CHAOS=1 $(BIN)/python -m pytest tests/faults tests/oracle tests/history -s
	$(BIN)/python -m pytest --store postgres $(ON_BOTH_AT_LENGTH)

docs: $(VENV)/.runtime ## Write docs/reference.md from the table of operations
	$(BIN)/python -m memorywall.wire.reference > docs/reference.md

clean: ## Remove what the other commands made
	rm -rf $(VENV) .bench-env .published-client .mypy_cache .pytest_cache .ruff_cache .hypothesis
