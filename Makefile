# Brood. `make run` and `make test` need nothing else; `make help` lists the rest.
#
# STACK=cpu|cuda   packages to install; default: cuda where there is an NVIDIA GPU, else cpu
# PYTHON=PATH      Python 3.11, 3.12 or 3.13 to make .venv with; default: the first one found
# ARGS="..."       arguments for the command: settings for run, pytest's options for test
# WORKERS=2        processes that run tests side by side; one of them has all tests of the model

STACK ?=
PYTHON ?=
ARGS ?=
WORKERS ?= 2

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)
MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := help
.PHONY: help run test test-slow test-all docs lint format lock audit wheel-check environment clean

help:  ## Say what can be made
	@awk 'NR > 2 && /^#/ { print substr($$0, 3) } /^$$/ { print; exit }' $(MAKEFILE_LIST)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: environment  ## Evolve a program: make run ARGS="problem=signal seed=1"
	@$(BIN)/python -m engine.run $(ARGS)

test: environment  ## Run the tests, without those that take minutes
	@$(PYTEST) -m "not slow" $(ARGS)

test-slow: environment  ## Run those that take minutes
	@$(PYTEST) -m slow $(ARGS)

test-all: environment  ## Run all tests, with new random examples
	@$(PYTEST) --hypothesis-profile=new $(ARGS)

docs: environment  ## Build the documentation as pages that need no network, in build/docs
	@$(BIN)/python -m install.docs

lint: environment  ## Check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: environment  ## Put the code into the common format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: environment  ## Regenerate requirements/*.txt from pyproject.toml
	@$(BIN)/python -m install.lock

audit: environment  ## List known vulnerabilities of the pinned packages; needs a network
	@mkdir -p build/audit
	@set -e; for stack in cpu cuda; do \
		sed 's/,!=[^ ;]*//' requirements/$$stack.txt > build/audit/$$stack.txt; \
		$(BIN)/uv tool run pip-audit==2.10.1 --no-deps --disable-pip -r build/audit/$$stack.txt $(ARGS); \
	done

wheel-check: environment  ## Build a wheel and try it in a new environment: ARGS="extra=cpu"
	@$(BIN)/python -m install.wheel_check $(ARGS)

environment:  ## Make .venv, or bring it up to date
	@sh install/setup.sh '$(STACK)' '$(PYTHON)'

clean:  ## Remove .venv and all caches, but no runs
	rm -rf .venv .bench build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name .venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
