# skerry: `make demo` shows it, `make test` proves it. `make help` lists the rest.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON  ?= python3
VENV    := .venv
RUN     := $(VENV)/bin/python
# Two more than there are processors: many a test waits for what it has started.
TEST    := $(RUN) -m pytest -n $(shell expr $$(nproc) + 2) --dist worksteal
CACHE   := build/cache
# Of this folder: a copy of it is set up anew, as its .venv would run what lies in the first.
STAMP   := build/setup.$(shell pwd | cksum | cut -d' ' -f1).stamp
BOARD   ?= iris
PORT    ?= /dev/ttyUSB0
ID      ?= 1
# Relative to where it is said: make goes on in another folder.
OWN     := $(if $(EXTENSIONS),EXTENSIONS=$(abspath $(EXTENSIONS)))

# lint and firmware make the same objects.
.NOTPARALLEL:
.PHONY: archive help setup firmware sizes testbed wire demo check lint format test explore soak test-renode bench flash clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## install what is missing: Debian packages, a virtual environment
$(STAMP): tools/setup tools/packages.txt requirements.lock pyproject.toml
	@PYTHON=$(PYTHON) tools/setup
	@mkdir -p $(@D) && touch $@

firmware: $(STAMP) ## build the mote images and print their sizes
	@$(MAKE) --no-print-directory -C firmware PYTHON=$(abspath $(RUN)) $(OWN)

sizes: $(STAMP) ## keep the images' sizes, for `make firmware` to compare with
	@$(MAKE) --no-print-directory -C firmware sizes PYTHON=$(abspath $(RUN))

testbed: $(STAMP) ## build the emulator: core and CPU back-ends
	@$(MAKE) --no-print-directory -C testbed/core

wire: $(STAMP) ## generate what is generated from the packet definitions
	@$(RUN) -m skerry_protocol.wire_header firmware/include/wire.h
	@$(RUN) -m skerry_protocol.document docs/protocol.md

demo: firmware testbed ## 20 emulated motes, two users, three queries, one minute
	@$(RUN) -m skerry_testbed.demo

C_FILES = $(shell find firmware testbed hil_tests -name '*.[ch]')

# mypy takes what PYTHONPATH names for installed, and keeps silent about it.
lint: $(STAMP) ## what Python's and C's checkers find
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check --quiet .
	@env -u PYTHONPATH $(VENV)/bin/mypy
	@found=$$(env -u PYTHONPATH $(VENV)/bin/lint-imports --no-logo --cache-dir $(CACHE)/imports) || { echo "$$found"; exit 1; }
	@$(RUN) tools/retired_words.py
	@$(VENV)/bin/clang-format --dry-run -Werror $(C_FILES)
	@$(MAKE) --no-print-directory -j $$(nproc) -C firmware lint PYTHON=$(abspath $(RUN)) TIDY=$(abspath $(VENV)/bin/clang-tidy)

format: $(STAMP) ## lay out Python and C as `make lint` wants them
	@$(VENV)/bin/ruff format --quiet .
	@$(VENV)/bin/clang-format -i $(C_FILES)

check: lint firmware testbed ## lint and unit tests, in under two minutes
	@$(TEST) -q -m "not slow and not spark" protocol gateway testbed/tests/unit firmware bench tools examples

test: lint firmware testbed archive ## everything: what CI runs
	@$(TEST)

# What failed is kept three times: as a seed, as the blob that Hypothesis prints, and in its database, which it begins with next time.
explore: firmware testbed archive ## tests that draw, by a fresh seed or SEED=n; their report is kept in build/explore
	@mkdir -p build/explore
	@set -o pipefail; seed=$(or $(SEED),$$((RANDOM << 15 | RANDOM))); \
	SKERRY_SEED=$$seed $(TEST) -m "hypothesis or drawn" --hypothesis-seed=$$seed 2>&1 | tee build/explore/$$seed.log

soak: firmware testbed archive ## the long forms of tests, which make test leaves out
	@$(TEST) -m soak

# Each start of a Spark takes half the time with it.
archive: $(STAMP)
	@$(RUN) -m gateway.tests.class_archive

test-renode: firmware testbed ## the same image in Renode, where that is installed
	@if command -v renode-test >/dev/null; then \
		renode-test hil_tests/renode/three_motes.robot hil_tests/renode/frames.robot; \
	else \
		echo "test-renode: not run: renode-test is not on the PATH. Renode has no package in the registries: take 1.15.3 or 1.16.1 from" \
		     "https://github.com/renode/renode/releases, and its tests' needs by pip install -r tests/requirements.txt" >&2; \
	fi

bench: firmware testbed ## every benchmark that ends soon, or some: BENCH="network slots --quick"
	@$(RUN) -m bench run $(BENCH)

flash: $(STAMP) ## program a real mote: BOARD=iris PORT=/dev/ttyUSB0 ID=7 [ROOT=1] [DRY_RUN=1]
	@$(MAKE) --no-print-directory -C firmware flash PYTHON=$(abspath $(RUN)) BOARD=$(BOARD) PORT=$(PORT) ID=$(ID) $(OWN)

clean: ## remove what was built
	@rm -rf build
