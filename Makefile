# SPDX-License-Identifier: Apache-2.0
# A newcomer needs two commands: `make demo` and `make test`. `make help` lists all targets; the
# tools for one purpose are behind `python -m tools`.
SHELL := /bin/bash
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)
# Tests start hundreds of processes of the package: Python keeps what it compiled.
export PYTHONDONTWRITEBYTECODE :=

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The packages of some extras, as pyproject.toml has them.
NEEDS_OF = $(shell $(PYTHON) -c 'import tomllib; e = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; print(*(repr(need) for extra in "$(1)".split() for need in e[extra]))')
RUST := Cargo.toml Cargo.lock $(shell find src -name '*.rs')

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 22

# All tools are checked before anything is installed; `make test` adds what only tests need.
demo: need-python need-cargo need-java $(if $(wildcard $(VENV)/built),$(VENV)/built,$(VENV)/demo-built) ## build, install into .venv, run the main job on a captured sample
	$(BIN)/kafka-rebalance demo

# Tests of brokers and clients mostly wait, so there are more processes than two cores.
# A test that hangs is named, with the line at which it waits, instead of holding up the whole run.
PYTEST = $(BIN)/python -m pytest -q --timeout 900 -n
quick: need-python need-cargo $(VENV)/built ## the tests that start no process, on few fixed seeds (three minutes)
	$(PYTEST) $(or $(WORKERS),3)

# Laws draw fresh seeds, and print the first; `make test FIRST_SEED=N` draws those from N on.
test: need-python need-cargo need-java $(VENV)/built ## all tests but `make frames`; those against Kafka's own classes need Maven
	@command -v mvn >/dev/null && $(MAKE) --no-print-directory judges || \
	  echo "No Maven ('apt-get install maven'): tests against Kafka's own classes and a broker are skipped." >&2
	@$(BIN)/python -m tools browser
	@$(MAKE) --no-print-directory test-rust
	$(PYTEST) $(or $(WORKERS),4) --whole $(FIRST_SEED:%=--first-seed %)

test-rust: need-cargo ## the tests of the core that are written in Rust
	cargo test --quiet

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

judges: tools/target/built ## build Kafka's own classes: assignors, coordinator, broker, consumers, Connect
tools/target/built: $(shell find tools -name pom.xml -o -name '*.java') | need-maven
	mvn -q -B -f tools/pom.xml package
	@mkdir -p $(@D) && touch $@

bench: judges $(VENV)/built ## our core and its interfaces against other libraries, on Kafka's grid (50 min); needs Go
	$(BIN)/python -m benches.run
	$(BIN)/python -m benches.server_side

bench-balance: $(VENV)/built ## `balanced` and `weighted` beside OR-Tools' flow and franz-go (10 min); needs Go
	$(BIN)/python -m benches.balance

bench-felt: $(VENV)/built ## what users wait for: the prompt, objects, past rebalances, the first table (2 min)
	$(BIN)/python -m benches.felt

frames: $(VENV)/built ## tests/test_frames.py: Arrow with polars, DuckDB and pandas 3, in an environment of their own
	own=$$($(BIN)/python -m tools environment build/frames-tools --group frames 'pandas>=3' 'pyarrow>=18' pytest) && \
	  PYTHONPATH=python $$own -m pytest -q --noconftest -o addopts=-ra tests/test_frames.py

docs: $(VENV)/built ## build the site of the documentation into build/site; fails at a broken link
	$(BIN)/pip install --quiet $(call NEEDS_OF,docs)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "build/site/index.html"

wheel: need-python need-cargo ## build the wheel for Linux x86-64, check it, try it with every Python on the path, or with PYTHONS
	own=$$($(PYTHON) -m tools environment build/wheel-tools --group wheel) && $$own -m tools.wheel $(PYTHONS)

audit: need-python ## licences and advisories of what the extras need, and of the crates (cargo-deny); names what it skips
	own=$$($(PYTHON) -m tools environment build/audit-tools 'pip-audit>=2.10' $(call NEEDS_OF,arrow spark kafka confluent aiokafka exporter serve mcp rollout)) && \
	  $$own -m tools.audit $(STRICT)

clean: ## remove everything that was built
	rm -rf $(VENV) target build tools/target tools/*/target benches/peers/franz/franz
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find python -name '*.so' -delete

# The virtual environment is installed again when pyproject.toml changes; the core is built again when Rust changes.
$(VENV)/installed: pyproject.toml | need-python need-cargo
	$(PYTHON) -m tools environment $(VENV) --group dev >/dev/null
	@touch $@

$(VENV)/built: $(VENV)/installed $(RUST) | need-cargo
	@echo "building …"
	@# maturin installs into the environment that is active; it must be this one.
	@env -u CONDA_PREFIX VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --extras arrow,spark,kafka,confluent,aiokafka \
	  > $(VENV)/build.log 2>&1 || { cat $(VENV)/build.log >&2; exit 1; }
	@touch $@

$(VENV)/demo-built: pyproject.toml $(RUST) | need-python need-cargo
	$(PYTHON) -m tools environment $(VENV) 'maturin>=1.16,<2' >/dev/null
	@echo "building the core with cargo; meanwhile, installing what the demo needs: pyspark, pyarrow, pandas …"
	@$(BIN)/maturin build --profile demo --features python --quiet --out $(VENV)/wheel > $(VENV)/build.log 2>&1 & build=$$!; \
	  $(BIN)/pip install --no-compile --disable-pip-version-check $(call NEEDS_OF,spark) || { kill $$build; exit 1; }; \
	  echo "waiting for cargo …"; \
	  wait $$build || { cat $(VENV)/build.log >&2; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall $(VENV)/wheel/*.whl
	@touch $@

need = @{ $(1); } >/dev/null 2>&1 || { echo "$(2)" >&2; exit 1; }
need-python:
	$(call need,$(PYTHON) -c 'import sys; import venv; import ensurepip; sys.exit(sys.version_info < (3, 11))',Python \
	  3.11 or newer is needed with its venv ('$(PYTHON)' is not): 'apt-get install python3 python3-venv' or \
	  name one with 'make PYTHON=python3.12 …'.)
need-cargo:
	$(call need,command -v cargo,Rust's cargo is needed (1.88 or newer): 'apt-get install rustup && rustup default stable'.)
need-java:
	$(call need,java -version 2>&1 | grep -qE 'version "(1[7-9]|[2-9][0-9])',Java 17 or newer is needed for Spark: \
	  'apt-get install openjdk-17-jre-headless'.)
need-maven: need-java
	$(call need,command -v mvn,Maven is needed to fetch Kafka's own classes: 'apt-get install maven'.)
