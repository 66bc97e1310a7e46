# The ways into Rollcall. `make up` is all that is needed; `make help` lists the rest.
#
#   make up PORT=9000            another port          make up ARGS="--no-admin"   any option of `manage.py up`
#   make test ARGS="-k feed"     some tests            ROLLCALL_HOME=/srv/x make up    another home

SHELL := /bin/sh
VENV := .venv
PY := $(VENV)/bin/python
HOST ?= 127.0.0.1
PORT ?= 8000
ARGS ?=
MINUTES ?= 10
HOURS ?= 1
# The stamps say that an installation has ended, and with which requirements: a directory alone may be half of one.
RUN_STAMP := $(VENV)/.requirements
DEV_STAMP := $(VENV)/.requirements-dev

.PHONY: help install install-dev up demo down test lint bench chaos soak explore fuzz clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

install: $(RUN_STAMP) ## make .venv with the pinned requirements
	@:

install-dev: $(DEV_STAMP) ## the same, and what tests and linters need
	@:

$(RUN_STAMP): requirements.txt scripts/install
	@scripts/install $(VENV) requirements.txt
	@touch $@

$(DEV_STAMP): requirements-dev.txt $(RUN_STAMP)
	@scripts/install $(VENV) requirements-dev.txt
	@touch $@

up: install ## install, prepare the home, and run everything until Ctrl-C
	@$(PY) manage.py up --host $(HOST) --port $(PORT) $(ARGS)

demo: install ## the same in a throw-away home with examples deployed; Ctrl-C takes everything away
	@$(PY) scripts/demo --port $(PORT) $(ARGS)

down: install ## take all services down, then stop the control plane
	@$(PY) manage.py stop --services $(ARGS)

test: install-dev ## the whole test suite
	@$(PY) -m pytest -n 2 --dist worksteal $(ARGS)

lint: install-dev ## style, types, layers, forgotten migrations
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
	@$(PY) manage.py makemigrations --check --dry-run

chaos: install-dev ## people and enemies by chance on a real control plane: MINUTES=30 SEED=n, or ARGS="--replay FILE"
	@$(PY) -m tests.chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(ARGS)

soak: install-dev ## 30 services and 300 replicas under steady work: HOURS=1; memory, database, logs and latency stay flat
	@$(PY) -m tests.chaos.soak --hours $(HOURS) $(ARGS)

bench: install-dev ## the measurements, as ratios to plain programs in the same run
	@$(PY) -m benchmarks.run $(if $(ONLY),--only $(ONLY)) $(ARGS)

explore: install-dev ## every order of events in small worlds, and faults put into the core; prints states visited
	@$(PY) -m tests.core.explore
	@ROLLCALL_RACES=1000 $(PY) -m pytest -q tests/actions/test_transition.py tests/actions/test_deliveries.py

fuzz: install-dev ## hostile texts, sockets, files and replies, FACTOR (200) times as many as in the suite
	@ROLLCALL_FUZZ=$(or $(FACTOR),200) $(PY) -m pytest -n 2 --timeout 7200 tests/fuzz tests/core/test_spec_fuzz.py tests/web/test_fuzz_sockets.py tests/web/test_fuzz_ansi.py tests/api/test_fuzz_api.py $(ARGS)

clean: ## remove .venv and everything that was built; homes stay
	rm -rf $(VENV) staticfiles staticfiles.new staticfiles.old .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
