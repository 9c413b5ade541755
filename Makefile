# SPDX-License-Identifier: Apache-2.0
# A newcomer needs two commands: `make demo` and `make test`. `make help` lists all targets; the
# tools for one purpose are behind `python -m tools`.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.PHONY: help demo quick test lint lint-rust lint-python lint-types format judges fuzz bench frames browser \
        docs wheel clean need-python need-cargo need-java need-maven

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The packages of some extras, as pyproject.toml has them.
NEEDS_OF = $(shell $(PYTHON) -c 'import tomllib; e = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; print(*(repr(need) for extra in "$(1)".split() for need in e[extra]))')
RUST := Cargo.toml Cargo.lock $(shell find src -name '*.rs')
JUDGES := oracle connect-oracle coordinator-oracle server-oracle broker connect-plugin

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 22

# All tools are checked before anything is installed; `make test` adds what only tests need.
demo: need-python need-cargo need-java $(if $(wildcard $(VENV)/built),$(VENV)/built,$(VENV)/demo-built) ## build, install into .venv, run the main job on a captured sample
	$(BIN)/kafka-rebalance demo

WORKERS ?= 2
PYTEST = $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup
quick: need-python need-cargo $(VENV)/built ## the tests that start no process, on few fixed seeds (two minutes)
	$(PYTEST)

# Laws draw fresh seeds, and print the first; `make test FIRST_SEED=N` draws those from N on.
FIRST_SEED ?=
test: need-python need-cargo need-java $(VENV)/built browser ## all tests but `make frames`; those against Kafka's own classes need Maven
	@command -v mvn >/dev/null && $(MAKE) --no-print-directory judges || \
	  echo "Maven is not here: the tests against Kafka's own classes and a real broker are skipped." \
	       "Install it, for example with 'apt-get install maven'." >&2
	cargo test --quiet
	$(PYTEST) --whole $(FIRST_SEED:%=--first-seed %)

lint: lint-rust lint-python lint-types ## formatters, linters, type checker, over the whole tree

lint-rust: need-cargo ## rustfmt, clippy, and that the fuzz targets compile
	cargo fmt --check
	cargo clippy --quiet --all-targets -- -D warnings
	CUSTOM_LIBFUZZER_PATH=$(CURDIR)/fuzz/libfuzzer.a cargo check --quiet --manifest-path fuzz/Cargo.toml --target-dir target

lint-python: $(VENV)/installed ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint-types: $(VENV)/built ## mypy --strict over the package, tests, tools and benches; the core's stubs
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest kafka_rebalance._core

format: $(VENV)/built ## let the formatters rewrite the code
	cargo fmt
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

judges: $(JUDGES:%=tools/%/target/built) ## build Kafka's own classes: assignors, coordinator, broker, consumers, Connect
.SECONDEXPANSION:
tools/%/target/built: tools/pom.xml tools/%/pom.xml $$(shell find tools/$$* -name '*.java') | need-maven
	mvn -q -B -f tools/$*/pom.xml package
	@touch $@

FUZZ_SECONDS ?= 600
fuzz: need-cargo ## fuzz the decoders, guided by coverage, for FUZZ_SECONDS in all
	@command -v cargo-fuzz >/dev/null || cargo install --locked --quiet cargo-fuzz
	FUZZ_SECONDS=$(FUZZ_SECONDS) fuzz/run.sh

bench: judges benches/peers/franz/franz $(VENV)/built ## our core and its interfaces against other libraries, on Kafka's grid (50 min)
	$(BIN)/python -m benches.run
	$(BIN)/python -m benches.server_side

benches/peers/franz/franz: benches/peers/franz/main.go benches/peers/franz/go.mod
	@command -v go >/dev/null || { \
	  echo "Go is needed for franz-go, a peer of the benchmark: 'apt-get install golang'." >&2; exit 1; }
	cd benches/peers/franz && go build -o franz .

frames: $(VENV)/built build/frames-tools ## tests/test_frames.py: Arrow with polars, DuckDB and pandas 3, in an environment of their own
	PYTHONPATH=python build/frames-tools/bin/python -m pytest -q --noconftest -o addopts=-ra tests/test_frames.py

browser: ## install a headless Chromium for the tests of pages, if the system can
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq \
	    && apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1; } || \
	  echo "No Chromium here: the tests of pages are skipped. Get it with 'apt-get install chromium'." >&2

docs: $(VENV)/built $(VENV)/docs-installed ## build the site of the documentation into build/site; fails at a broken link
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "build/site/index.html"

PYTHONS ?=
wheel: need-python need-cargo build/wheel-tools ## build the wheel for Linux x86-64, check it, try it with every Python on the path, or with PYTHONS
	build/wheel-tools/bin/python -m tools.wheel $(PYTHONS)

clean: ## remove everything that was built
	rm -rf $(VENV) target build tools/*/target benches/peers/franz/franz
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find python -name '*.so' -delete

# The virtual environment is installed anew when pyproject.toml changes; the core is built anew when Rust changes.
$(VENV)/installed: pyproject.toml | need-python need-cargo
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --group dev
	@touch $@

$(VENV)/built: $(VENV)/installed $(RUST) | need-cargo
	@echo "building …"
	@# maturin installs into the environment that is active; it must be this one.
	@env -u CONDA_PREFIX VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --extras arrow,spark,kafka,confluent,aiokafka \
	  > $(VENV)/build.log 2>&1 || { cat $(VENV)/build.log >&2; exit 1; }
	@touch $@

$(VENV)/docs-installed: pyproject.toml | $(VENV)/installed
	$(BIN)/pip install --quiet $(call NEEDS_OF,docs)
	@touch $@

build/frames-tools: NEEDS = --group frames 'pandas>=3' 'pyarrow>=18' pytest
build/wheel-tools: NEEDS = --group wheel
build/frames-tools build/wheel-tools: pyproject.toml | need-python
	$(PYTHON) -m venv $@
	$@/bin/pip install --quiet --upgrade pip
	$@/bin/pip install --quiet $(NEEDS)
	@touch $@

$(VENV)/demo-built: pyproject.toml $(RUST) | need-python need-cargo
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check 'maturin>=1.16,<2'
	@echo "building the core with cargo; meanwhile, installing what the demo needs: pyspark, pyarrow, pandas …"
	@$(BIN)/maturin build --profile demo --features python --quiet --out $(VENV)/wheel > $(VENV)/build.log 2>&1 & build=$$!; \
	  $(BIN)/pip install --no-compile --disable-pip-version-check $(call NEEDS_OF,spark) || { kill $$build; exit 1; }; \
	  echo "waiting for cargo …"; \
	  wait $$build || { cat $(VENV)/build.log >&2; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall $(VENV)/wheel/*.whl
	@touch $@

need-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed ('$(PYTHON)' is not): 'apt-get install python3 python3-venv'," \
	       "or name one with 'make PYTHON=python3.12 …'." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "Python's venv is needed: 'apt-get install python3-venv'." >&2; exit 1; }

need-cargo:
	@command -v cargo >/dev/null || { \
	  echo "Rust's cargo is needed (1.88 or newer): 'apt-get install rustup && rustup default stable'." >&2; exit 1; }

need-java:
	@java -version 2>&1 | grep -qE 'version "(1[7-9]|[2-9][0-9])' || { \
	  echo "Java 17 or newer is needed, for Spark: 'apt-get install openjdk-17-jre-headless'." >&2; exit 1; }

need-maven: need-java
	@command -v mvn >/dev/null || { \
	  echo "Maven is needed to fetch Kafka's own classes: 'apt-get install maven'." >&2; exit 1; }
