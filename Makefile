# The targets of the project. Each one sets up what it needs; `make help` lists them.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON := .venv/bin/python
PRODUCTION ?=
DIR    ?= $(if $(PRODUCTION),build/production,.headrace)
SEEDS  ?= 200
SEED   ?=
TRACE  ?=
NODES  ?= 1
WHAT   ?=

.PHONY: help setup demo up down test check sim bench proto openapi reference format lock clean

help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: ## install missing tools and build the engine; does nothing if nothing changed
	@deploy/setup.sh

demo: setup ## run the demo on free ports; writes build/demo.json
	@$(PYTHON) tests/demo

up: setup ## start the service in the background [DIR=.headrace] [PORT=8460] [DEMO=1] [PRODUCTION=1]
	@$(if $(PRODUCTION),$(PYTHON) -m deploy.production,.venv/bin/headrace up --detach \
	    $(if $(DEMO),--demo)) \
	    --dir $(DIR) $(if $(PORT),--port $(PORT))

down: setup ## stop the service [DIR=.headrace] [PRODUCTION=1]
	@.venv/bin/headrace down --dir $(DIR)

test: setup ## the newcomer's suite: every test folder, without what is slow, one line per stage
	@$(PYTHON) tests/suite.py test

check: ## all that guards a change: lint, types, layering, strict C, sanitizers, fuzz, simulation, every test
	@deploy/setup.sh --check
	@$(PYTHON) tests/suite.py check

sim: setup ## the deterministic simulator; last line is JSON [SEEDS=200] [NODES=1] [SEED=k TRACE=1]
	@$(PYTHON) -m tests.simulation.run --seeds $(SEEDS) --nodes $(NODES) $(if $(SEED),--seed $(SEED)) $(if $(TRACE),--trace)

bench: setup ## benchmarks; build/bench/NAME.json each [WHAT=name]
	@$(PYTHON) tests/performance $(WHAT)

proto: setup ## generate the protobuf stubs beside their protos
	@deploy/protos.sh

openapi: setup ## generate openapi/control-plane.json from the app
	@$(PYTHON) -m api openapi --output openapi/control-plane.json

reference: setup ## generate docs/cli.md from the command tree
	@$(PYTHON) -m tests.support.cli_reference

format: setup ## format Python and C in place
	@.venv/bin/ruff check --quiet --fix-only . && .venv/bin/ruff format --quiet .
	@find native -name '*.[ch]' ! -name '_*' -exec .venv/bin/clang-format -i {} +

lock: setup ## resolve requirements/*.txt again from pyproject.toml
	@deploy/lock.sh

clean: ## remove what was built; keeps .headrace
	@rm -rf build native/_engine*.so headrace/_codec*.so native/__pycache__ .venv
