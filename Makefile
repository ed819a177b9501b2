# kafkalog: everything a developer types. `make` alone shows the list.
# Each target first brings up what is missing (`setup`), which takes a moment when nothing changed.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV    := .venv
PYTHON  := $(VENV)/bin/python
PYTEST  := $(PYTHON) -m pytest
NAME    ?= all
MINUTES ?= 5
SEED    ?= 1
WHAT    ?= all
MUTATIONS ?= 0
PROCESSES ?= 2
CLOCK_DAYS ?= 0
OPTIONS ?=
SPARK ?=

KERNEL_TESTS := tests/kernels tests/native
# That what is generated in the documents is what the code, and the recorded starts of a broker, say.
GENERATED := tests/test_documents.py::test_tables_match_the_code \
  tests/starts/test_starts.py::test_the_page_is_made_of_the_rows \
  tests/starts/test_starts.py::test_every_state_has_a_row_and_every_row_a_state \
  tests/starts/test_starts.py::test_verify_says_of_every_state_what_the_broker_does

# One time zone and one interpreter for the driver and for Spark's workers.
export TZ := UTC
export PYSPARK_PYTHON := $(CURDIR)/$(PYTHON)
export PYSPARK_DRIVER_PYTHON := $(CURDIR)/$(PYTHON)
# Tests and demo with the clock so many days ahead: see tests/support/clock_ahead.
ifneq ($(CLOCK_DAYS),0)
export CLOCK_DAYS
export PYTHONPATH := $(CURDIR)/tests/support/clock_ahead:$(PYTHONPATH)
endif

.PHONY: help setup demo docs test test-all check test-kernels test-newest matrix fuzz soak bench lock

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## make .venv from requirements.lock, find or install Java, fetch Kafka's jars, compile the kernels
	@.ci/setup.sh

demo: setup ## the main job on the samples: segments, SQL, plan, compaction of a copy, verification
	@$(PYTHON) data/demo.py

docs: setup ## the pages below docs/ as a site in .cache/site; a broken link is an error
	@.ci/docs.sh

test: setup ## each promise once, Kafka's own cleaner and Spark included: at most 8 minutes on two cores
	@$(PYTEST) -n $(PROCESSES)

test-all: setup ## that and further releases, seeds, codecs, places of a kill: at most 30 minutes on two cores
	@$(PYTEST) -n $(PROCESSES) -m "not soak"

check: setup docs ## format, lint, types, layers, generated tables, the site of the documents
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m mypy
	@$(PYTEST) -q tests/test_layering.py $(GENERATED)

test-kernels: setup ## the kernels three ways: compiled, interpreted (with coverage), bounds-checked
	@$(PYTEST) -q $(KERNEL_TESTS)
	@NUMBA_DISABLE_JIT=1 $(PYTEST) -q $(KERNEL_TESTS) --cov=kafkalog.kernels --cov=kafkalog.native \
	  --cov-report=term
	@NUMBA_BOUNDSCHECK=1 $(PYTEST) -q $(KERNEL_TESTS)

test-newest: setup ## the same with the newest numba, lz4, zstandard, google-crc32c, obstore, in an environment of their own
	@.ci/test-newest.sh

matrix: setup ## a chosen part of the tests on Spark 3.5, 4.0, 4.1, 4.2 and 4.3, or on some: make matrix SPARK="3.5.9 4.0.5"
	@.ci/matrix.sh $(SPARK)

fuzz: setup ## random logs against Kafka's own cleaner, and damaged ones: make fuzz MINUTES=5 SEED=1 WHAT=all (cleaner, damage, loss)
	@$(PYTHON) -m tests.fuzz.run_fuzz --minutes $(MINUTES) --seed $(SEED) --what $(WHAT) \
	  --mutations $(MUTATIONS)

soak: setup ## the tests that take hours: kills at every step, every state before a live broker
	@$(PYTEST) -m soak

bench: setup ## every figure of docs/benchmarks.md, or one benchmark, a JSON line each: make bench NAME=decode OPTIONS="--rounds 1"
	@$(PYTHON) -m tests.benchmarks.bench_$(NAME) $(OPTIONS)

lock: setup ## resolve pyproject.toml and requirements-docs.in again into their lock files
	@$(PYTHON) -m piptools compile --extra test --extra dev --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-find-links --no-annotate --quiet --upgrade \
	  -o requirements.lock pyproject.toml
	@$(PYTHON) -m piptools compile --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-find-links --no-annotate --quiet --upgrade \
	  -o requirements-docs.lock requirements-docs.in
