# Two commands do everything: `make demo` and `make test`. Each sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 7377
DATA ?= memorywall-data

.DEFAULT_GOAL := help
.PHONY: help demo serve test test-sqlite test-postgres compiled on-both check coverage bench bench-sessions \
	bench-tokens bench-context bench-recall bench-summaries bench-instructions chaos integrations \
	docs clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# The tests start hundreds of interpreters. Each of them would compile every module it imports if
# the environment forbade bytecode.
export PYTHONDONTWRITEBYTECODE :=
# What is never imported need not be compiled.
INSTALL := $(BIN)/python -m pip install -q --disable-pip-version-check --no-compile -c constraints.txt

# An older pip compares every file of every release of a package: twice the time. Without a newer one
# the present one does.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	-$@ -m pip install -q --upgrade pip

$(VENV)/.runtime: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e .
	touch $@

$(VENV)/.test: pyproject.toml packages/testing/pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[test]' -e packages/testing
	touch $(VENV)/.runtime $@

demo: $(VENV)/.runtime ## Run an agent, kill it, see it go on; FOLDER=... for other files
	$(BIN)/python examples/demo.py $(FOLDER)

serve: $(VENV)/.runtime ## Start the server on PORT with the data in DATA
	$(BIN)/memorywall serve --data $(DATA) --port $(PORT) --dev

check: $(VENV)/.test ## Lint, types, import directions, lines of an operation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/test_architecture.py -k surface_of_an_operation

# What runs on PostgreSQL as well each time: where the store can matter.
ON_POSTGRES := tests/test_entries.py tests/test_sdk_concurrency.py \
	tests/test_kind_promise.py tests/test_kind_query_dimension.py \
	tests/cli/test_restore_forgotten.py \
	tests/openwop/test_open_runs.py tests/openwop/test_oracle.py \
	$(addprefix tests/http/test_,concurrency.py derived_forgetting.py event_stream.py \
		governed_eviction.py idempotency.py long_conditions.py promotions.py provenance.py put.py \
		renamed_names.py sealing.py search.py subject_names.py subjects.py tiers.py versions.py)
# What runs on PostgreSQL with `make chaos` only: it takes long or says the same on every store.
ON_POSTGRES_AT_LENGTH := $(filter-out $(ON_POSTGRES),$(wildcard tests/http/test_*.py \
		tests/test_load_context.py tests/test_sdk*.py tests/test_verify*.py tests/test_worker*.py)) \
	tests/adapters tests/longterm tests/work tests/recall tests/workflow_execution tests/oracle \
	$(addprefix tests/cli/test_,administration.py doctor.py put.py serve.py transfer.py verify.py \
		workflow.py)
# These are about PostgreSQL whatever the others run on, so that once is enough.
OF_POSTGRES := $(wildcard tests/test_postgres*.py tests/test_storage_postgres*.py)
# It is about the PostgreSQL that the tests start, which every other test on PostgreSQL needs.
OF_POSTGRES_AT_LENGTH := tests/test_postgres_support.py
# The longest come first, so that no worker is left alone with one of them in the end.
LONGEST := tests/history tests/faults tests/oracle
WORKERS ?= 3
TEST_SQLITE = pytest -q -n $(WORKERS) --dist worksteal \
	$(addprefix --ignore=,$(OF_POSTGRES)) $(LONGEST) tests
TEST_POSTGRES = pytest -q --store postgres $(filter-out $(OF_POSTGRES_AT_LENGTH),$(OF_POSTGRES)) \
	$(ON_POSTGRES)

test: $(VENV)/.test ## Run every test, on SQLite and on PostgreSQL, beside `check`
	$(BIN)/python tests/support/browser.py
	$(MAKE) --jobs 3 test-sqlite test-postgres check

# Compiles the tests once. The workers start at the same time, and each would compile them all.
compiled: $(VENV)/.test
	$(BIN)/python -m pytest -q --collect-only tests > $(VENV)/.collected

test-sqlite: compiled
	$(BIN)/python -m $(TEST_SQLITE)

test-postgres: compiled
	$(BIN)/python -m $(TEST_POSTGRES)

on-both: # What runs on both stores
	@echo $(ON_POSTGRES) $(ON_POSTGRES_AT_LENGTH)

coverage: $(VENV)/.test ## Measure the branches that `make test` takes; the report is in htmlcov
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m $(TEST_SQLITE)
	$(BIN)/python -m coverage run -m $(TEST_POSTGRES)
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage html -q
	$(BIN)/python -m coverage report --format total

bench: $(VENV)/.test ## Measure beside a raw ASGI app and the reference server; STORE=postgres ARGS="--help"
	$(BIN)/python -m benchmarks $(if $(STORE),--store $(STORE)) $(ARGS)

# DATA is conversations here, where it is given; for the server it is a directory with a default.
bench-sessions: $(VENV)/.test ## Measure turns, checkpoints and resuming by length of session; ARGS="--help"
	$(BIN)/python -m benchmarks.sessions $(ARGS)

bench-tokens: $(VENV)/.test ## Measure the estimate of tokens; ARGS="--calibrate 1.08"
	$(BIN)/python -m benchmarks.tokens $(ARGS)

bench-context: $(VENV)/.test ## Measure compiled contexts; DATA=FILE ARGS="--help"
	$(BIN)/python -m benchmarks.context $(if $(filter-out file,$(origin DATA)),--data $(DATA)) $(ARGS)

bench-recall: $(VENV)/.test ## Measure how well and how fast recall finds; DATA="FILE FILE" ARGS="--help"
	$(BIN)/python -m benchmarks.recall $(if $(filter-out file,$(origin DATA)),$(DATA)) \
		$(if $(STORE),--store $(STORE)) $(ARGS)

bench-summaries: $(VENV)/.test ## Measure what summaries keep of labelled dialogues; ARGS="--help"
	$(BIN)/python -m benchmarks.summaries $(ARGS)

bench-instructions: $(VENV)/.test ## Count the instructions of a request; needs valgrind
	$(BIN)/python -m benchmarks.instructions $(ARGS)

chaos: $(VENV)/.test ## The long version of the randomised tests, with new seeds
	$(BIN)/python -m benchmarks.instructions --gate
	MEMORYWALL_CHAOS=1 $(BIN)/python -m pytest -s tests/faults tests/history tests/oracle
	MEMORYWALL_CHAOS=1 $(BIN)/python -m pytest -s --ignore=tests/faults --ignore=tests/history \
		--ignore=tests/oracle tests
	MEMORYWALL_CHAOS=1 $(BIN)/python -m pytest -s --store postgres $(ON_POSTGRES_AT_LENGTH)

integrations: $(VENV)/.test ## Test frameworks and published schemas; FRAMEWORKS="mcp anthropic"; needs npm
	$(BIN)/python -m integrations $(FRAMEWORKS)
	$(if $(MEMORYWALL_OPENWOP_SCHEMAS),$(BIN)/python -m pytest -q integrations/test_openwop_schemas.py,\
		@echo "without MEMORYWALL_OPENWOP_SCHEMAS=FOLDER nothing is checked against OpenWOP's schemas")

docs: $(VENV)/.runtime ## Write docs/reference.md, settings.md and integrations.md from their tables
	$(BIN)/python -m memorywall.wire.reference > docs/reference.md
	$(BIN)/python -m memorywall.configuration.reference > docs/settings.md
	$(BIN)/python -m integrations.matrix > docs/integrations.md

clean: ## Remove what the other commands made
	rm -rf $(VENV) .bench-env .integrations .published-client .mypy_cache .pytest_cache .ruff_cache \
		.hypothesis .coverage htmlcov
