# Thin targets. Each makes its own virtual environment in .venv when there is none, or when
# pyproject.toml changed. What is needed before: Python 3.11 or later, git and make.

# The first interpreter that is new enough and can make environments (Debian: package python3-venv).
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	$$p -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CODE := ledger/a2a_ledger projections/a2a_ledger_projections verifier tests cli.py

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: demo test check fix docs bench chaos scale soak

demo: $(READY)
	$(BIN)/a2a-ledger demo

# A file at a time for each core: most tests wait for a disk or an agent.
test: $(READY)
	$(BIN)/pytest -n auto --dist loadfile

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(CODE)
	@command -v node >/dev/null || $(BIN)/pip install --quiet 'pyright[nodejs]'
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -q -m "not slow" tests/architecture tests/docs

fix: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	$(BIN)/python -m tests.docs.verb_lines
	$(BIN)/python -m tests.docs.cli_page
	$(BIN)/python -m tests.docs.layout_page
	$(BIN)/pytest -q tests/docs

bench: $(READY)
	$(BIN)/a2a-ledger bench

# Takes the primary of a cluster away under load: Patroni, etcd and PostgreSQL. The last two take root and namespaces.
# KILLS=1 FREEZES=0 CUTS=0 FULL_DISKS=0 is its short form.
KILLS := 5
FREEZES := 1
CUTS := 1
FULL_DISKS := 1
chaos: $(READY)
	$(BIN)/python -m tests.chaos.drill --kills $(KILLS) --freezes $(FREEZES) --cuts $(CUTS) --full-disks $(FULL_DISKS)

# Grows a ledger to EVENTS events below AT (10,000,000 take 30 GB and hours; it goes on where it stopped), and measures it.
AT := build/scale
EVENTS := 10000000
scale: $(READY)
	mkdir -p $(AT)
	$(BIN)/python -m tests.scale.grow $(AT)/ledger --events $(EVENTS)
	$(BIN)/python -m tests.scale.measure $(AT)/ledger
	$(BIN)/python -m tests.scale.many_tasks $(AT)/many-tasks

# Guard, read models, proxy and a real agent at a constant rate; MINUTES=0.3 is its short form.
MINUTES := 30
soak: $(READY)
	$(BIN)/python -m tests.scale.soak --minutes $(MINUTES)

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or later with venv and ensurepip was found; name one: make PYTHON=/path/to/python3"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@
