# make demo    set up, start the stack, ingest the sample bucket, ask the sample questions
# make test    set up, run every check and every test
# make help    the other targets

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	command -v $$python >/dev/null && $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	&& { echo $$python; break; }; done)
# An index that carries PyTorch for this machine, such as its CPU-only builds (see README.md).
TORCH_INDEX_URL ?=
# Two workers, each test file in one of them: servers are started once a worker.
PYTEST_ARGS ?= -n 2 --dist loadfile

# One thread per process: tests run several servers side by side on a small machine.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false PYTHONUNBUFFERED=1
STAGE = @printf '\n[%s] %s\n' "$$(date +%H:%M:%S)" "$(1)"

.PHONY: help setup demo test test-fast lint fix static drift pytest wheel clean third-party

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: ## build .venv and fetch both models; does nothing when up to date
	@PYTHON="$(PYTHON)" TORCH_INDEX_URL="$(TORCH_INDEX_URL)" .ci/setup

demo: ## set up, then the sample bucket and its questions (CI=true ends afterwards)
	@started=$$(date +%s); $(MAKE) setup; \
	SETUP_SECONDS=$$(( $$(date +%s) - started )) exec $(BIN)/pincite demo

test: setup static drift pytest wheel ## set up, every check, every test, the built wheel
	$(call STAGE,all checks and tests passed)

test-fast: setup ## unit, property and architecture tests that take no server and under ten seconds
	@$(TEST_ENV) $(BIN)/pytest -q -m "not slow" $(PYTEST_ARGS) \
		$(wildcard tests/unit tests/property tests/architecture)

lint: static drift ## formatting, style, imports, types, generated files

static:
	$(call STAGE,ruff format)
	@$(BIN)/ruff format --check .
	$(call STAGE,ruff check)
	@$(BIN)/ruff check .
	$(call STAGE,lint-imports)
	@$(BIN)/lint-imports --no-logo
	$(call STAGE,mypy --strict)
	@$(BIN)/mypy

drift:
	$(call STAGE,generated files)
	@$(BIN)/python -m tests.architecture.third_party --check

pytest:
	$(call STAGE,pytest)
	@$(TEST_ENV) $(BIN)/pytest $(PYTEST_ARGS)

wheel:
	$(call STAGE,wheel in a clean environment)
	@.ci/wheel-smoke

fix: ## format, and repair what ruff can repair
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

third-party: ## write THIRD_PARTY.md again, after a change of dependencies
	@$(BIN)/python -m tests.architecture.third_party

clean: ## remove what the checks and builds left; the data directory stays
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
