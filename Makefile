# Everything Headrace needs is set up by the first target that needs it. `make help` lists them.

PYTHON ?= python3
ARGS ?=
WORKERS ?= 2

BIN := .venv/bin
STAMP := .venv/.installed
BENCH_STAMP := .venv/.bench-installed
# The suites that compare what is served with what it should be.
RESULTS := aggregates cycles extrema groups hard_cases large_changes many_epochs outer_joins over_stream_tables partitions \
  random_groups random_views recursion recursion_cases replace retention set_operations small_copies source_changes subqueries \
  types views_in_queries writers
WAYS ?= probe index pruned scan whole
WORKLOAD_OPTIONS := SF SEED BATCHES ROWS ONLY NEAR_MISSES HEAP OUT
SOAK_OPTIONS := HOURS MODE SEED GAP WRITERS ONLY SKIP KEEP OUT
LOAD_OPTIONS := RATES RATE_SECONDS MODE WRITERS TRANSACTION BACKLOG MARKS WARMUP DRAIN ORDERS SEED SKIP OUT
COPY_OPTIONS := ROWS ROUNDS DSN DRIVER OUT
TPCH_OPTIONS := SCALE CHANGE ROWS MODE WARMUP ROUNDS TIMES ONLY SKIP MASTER HEAP KEEP PROJECT OUT

# Several processes; the files that take longest begin, see tests/forms.py. Test modules whose assertions
# pytest has rewritten are kept, whatever the environment says: that is half of the time of collecting.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --no-loadscope-reorder

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help install java demo test test-fast test-full check fmt lint types bench bench-floor bench-epochs bench-large bench-plan bench-recursion bench-daemon bench-restart bench-strata bench-partitions bench-capture bench-load bench-copy bench-tpch bench-choice bench-tpcds bench-job fuzz soak prove-access prove-capture prove-daemon prove-groups prove-recursion golden docs lock

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  PYTHON=python3.12 chooses another Python (3.11 or newer); ARGS='-k word' goes to pytest."

install: $(STAMP) ## make the environment in .venv, from requirements.lock

$(STAMP): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { \
	  echo "error: there is no $(PYTHON). Install Python 3.11 or newer, or name it: make PYTHON=/path/to/python"; exit 1; } >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $(PYTHON) is $$($(PYTHON) -V 2>&1), but Headrace needs Python 3.11 or newer."; \
	  echo "hint: if you have a newer one, name it: make PYTHON=python3.12"; exit 1; } >&2
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "error: $(PYTHON) cannot make virtual environments."; \
	  echo "hint: on Debian or Ubuntu: apt install python3-venv"; exit 1; } >&2
	@echo "Installing into .venv (a minute or two the first time)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

define CHECK_JAVA
import sys
from headrace.errors import HeadraceError
from headrace.spark.jvm import require_java
try:
    require_java()
except HeadraceError as error:
    sys.exit(f"error: {error}")
endef
export CHECK_JAVA

java: install
	@$(BIN)/python -c "$$CHECK_JAVA"

demo: install java ## start PostgreSQL and Spark, keep a small shop's tables fresh, and show it
	@$(BIN)/headrace demo

test-fast: install ## run the pure tests: no PostgreSQL server, no JVM
	HEADRACE_TESTS=fast $(PYTEST) --dist load $(ARGS)

test: install java ## run the tests, but for their exhaustive forms, in WORKERS=2 processes
	HEADRACE_TESTS=default $(PYTEST) --dist loadfile --durations 25 $(ARGS)

test-full: install java ## run all tests in their exhaustive forms, which include those of test
	HEADRACE_TESTS=full $(PYTEST) --dist loadfile --durations 25 $(ARGS)

check: lint types test-full ## what CI runs

fmt: install ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only .

lint: install ## look for mistakes and for code that is not formatted
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install ## check the types of the library
	$(BIN)/mypy

bench: bench-floor ## measure

bench-floor: install java
	$(BIN)/python -m bench.floor $(ARGS)

bench-epochs: install java
	$(BIN)/python -m bench.epochs $(foreach name,EPOCHS ROWS,$(if $($(name)),$(name)=$($(name)))) $(ARGS)

bench-large: install java
	$(BIN)/python -m bench.large $(if $(ROWS),ROWS=$(ROWS)) $(ARGS)

bench-plan: install java
	$(BIN)/python -m bench.plan $(ARGS)

prove-daemon: install java
	HEADRACE_KILLS=20 $(BIN)/python -m pytest -q --timeout 3600 tests/e2e/test_daemon_kills.py

prove-groups: install java
	HEADRACE_EPOCHS=200 HEADRACE_SEEDS=40 $(BIN)/python -m pytest -q --timeout 3600 tests/e2e/test_concurrent_readers.py tests/e2e/test_random_groups.py

prove-access: install java
	for way in $(WAYS); do HEADRACE_ACCESS_PATH=$$way $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile $(RESULTS:%=tests/e2e/test_%.py) || exit 1; done

prove-capture: install
	HEADRACE_ROUNDS=20 HEADRACE_SEEDS=6 $(BIN)/python -m pytest -q --timeout 3600 tests/ingest/test_modes_under_load.py
	HEADRACE_STREAMED=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile $(foreach name,slots transactions tables rows,tests/ingest/test_fault_$(name).py)

prove-recursion: install java
	HEADRACE_BATCHES=10 $(BIN)/python -m pytest -q tests/e2e/test_recursion.py

bench-recursion: install java
	$(BIN)/python -m bench.recursion $(ARGS)

bench-daemon: install java
	$(BIN)/python -m bench.daemon $(ARGS)

bench-restart: install java
	$(BIN)/python -m bench.restart $(ARGS)

bench-strata: install java
	$(BIN)/python -m bench.strata $(ARGS)

bench-partitions: install
	$(BIN)/python -m bench.partitions $(if $(ROWS),ROWS=$(ROWS)) $(ARGS)

bench-capture: install
	$(BIN)/python -m bench.capture $(if $(ROWS),ROWS=$(ROWS)) $(if $(ROUNDS),ROUNDS=$(ROUNDS)) $(ARGS)

bench-load: install java
	$(BIN)/python -m bench.load $(foreach name,$(LOAD_OPTIONS),$(if $($(name)),$(name)=$($(name)))) $(ARGS)

bench-copy: install java
	$(BIN)/python -m bench.copies $(foreach name,$(COPY_OPTIONS),$(if $($(name)),$(name)=$($(name)))) $(ARGS)

bench-tpch: $(BENCH_STAMP) java
	$(BIN)/python -m bench.tpch $(foreach name,$(TPCH_OPTIONS),$(if $($(name)),$(name)=$($(name)))) $(ARGS)

bench-choice: $(BENCH_STAMP) java
	$(BIN)/python -m bench.tpch.choice $(foreach name,$(TPCH_OPTIONS),$(if $($(name)),$(name)=$($(name)))) $(ARGS)

bench-tpcds: $(BENCH_STAMP) java
	$(BIN)/python -m bench.tpcds $(foreach name,$(WORKLOAD_OPTIONS),$(if $($(name)),$(name)=$($(name)))) $(ARGS)

bench-job: install java
	$(BIN)/python -m bench.job $(foreach name,$(WORKLOAD_OPTIONS),$(if $($(name)),$(name)=$($(name)))) $(ARGS)

$(BENCH_STAMP): bench/requirements.lock $(STAMP)
	@$(BIN)/python -m pip install --quiet --require-hashes -r bench/requirements.lock
	@touch $@

fuzz: install java ## try random views under random changes: SECONDS=1800 SEED=1
	$(BIN)/python -m fuzz $(if $(SECONDS),SECONDS=$(SECONDS)) $(if $(SEED),SEED=$(SEED)) $(ARGS)

soak: install java ## faults of every kind under load: HOURS=2 MODE=trigger|wal|both SEED=1 OUT=soak.json
	$(BIN)/python -m bench.soak $(foreach name,$(SOAK_OPTIONS),$(if $($(name)),$(name)=$($(name)))) $(ARGS)

golden: install ## write the expected plans and SQL of the golden tests anew; read the diff
	$(BIN)/python -m tests.query.golden $(ARGS)

docs: install ## generate the generated pages of docs/ again
	$(BIN)/python docs/generate.py

lock: install ## choose the newest allowed versions and write requirements.lock
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra dev \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
	  --output-file requirements.lock pyproject.toml
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --group bench \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
	  --output-file bench/requirements.lock
	@! grep -n -i -E '://|index-url|find-links' requirements.lock bench/requirements.lock
