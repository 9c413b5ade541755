# SPDX-License-Identifier: Apache-2.0
# A newcomer needs two commands: `make demo` and `make test`. `make help` lists all targets.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.PHONY: help demo test lint lint-rust lint-python lint-types format oracle connect-oracle coordinator-oracle server-oracle broker-jars connect-jars broker \
        differential differential-bytes differential-plans differential-connect parity-virtual parity bench-connect sample fuzz bench bench-quick \
        bench-bulk bench-coordinator bench-simulator bench-fleet franz \
        browser frames reality prediction pages docs wheel pictures clean need-python need-cargo need-java need-maven

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The packages of some extras, as pyproject.toml has them.
NEEDS_OF = $(shell $(PYTHON) -c 'import tomllib; e = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; print(*(repr(need) for extra in "$(1)".split() for need in e[extra]))')
RUST := Cargo.toml Cargo.lock $(shell find src -name '*.rs')
JAVA_OF = $(shell find tools/$(1) -name '*.java') tools/pom.xml tools/$(1)/pom.xml

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 22

# All tools are checked before anything is installed; `make test` adds what only tests need.
demo: need-python need-cargo need-java $(if $(wildcard $(VENV)/built),$(VENV)/built,$(VENV)/demo-built) ## build, install into .venv, run the main job on a captured sample
	$(BIN)/kafka-rebalance demo

WORKERS ?= 2
test: need-python need-cargo need-java $(VENV)/built ## all tests but `make frames`; the tests against Kafka's own classes also need Maven
	@command -v mvn >/dev/null && $(MAKE) --no-print-directory oracle connect-oracle coordinator-oracle server-oracle \
	  broker-jars connect-jars || \
	  echo "Maven is not here: the tests against Kafka's own classes and a real broker are skipped." \
	       "Install it, for example with 'apt-get install maven'." >&2
	@$(MAKE) --no-print-directory browser
	cargo test --quiet
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup

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

oracle: tools/oracle/target/oracle.jar ## the real Java assignors as a JSON-lines filter
tools/oracle/target/oracle.jar: $(call JAVA_OF,oracle) | need-maven
	mvn -q -B -f tools/oracle/pom.xml package
	@touch $@

connect-oracle: tools/connect-oracle/target/connect-oracle.jar ## Connect's real assignors as a JSON-lines filter
tools/connect-oracle/target/connect-oracle.jar: $(call JAVA_OF,connect-oracle) | need-maven
	mvn -q -B -f tools/connect-oracle/pom.xml package
	@touch $@

coordinator-oracle: tools/coordinator-oracle/target/coordinator-oracle.jar ## Kafka's own coordinator in virtual time
tools/coordinator-oracle/target/coordinator-oracle.jar: $(call JAVA_OF,coordinator-oracle) | need-maven
	mvn -q -B -f tools/coordinator-oracle/pom.xml package
	@touch $@

server-oracle: tools/server-oracle/target/server-oracle.jar ## the assignors of Kafka's brokers as a JSON-lines filter
tools/server-oracle/target/server-oracle.jar: $(call JAVA_OF,server-oracle) | need-maven
	mvn -q -B -f tools/server-oracle/pom.xml package
	@touch $@

broker-jars: tools/broker/target/built ## the real broker and consumers, for the live tests
tools/broker/target/built: $(call JAVA_OF,broker) | need-maven
	mvn -q -B -f tools/broker/pom.xml package
	@touch $@

connect-jars: tools/connect-plugin/target/built ## real Connect workers, for the live tests
tools/connect-plugin/target/built: $(call JAVA_OF,connect-plugin) | need-maven
	mvn -q -B -f tools/connect-plugin/pom.xml package
	@touch $@

broker: broker-jars $(VENV)/built ## start a real single-node broker by hand; Ctrl-C stops it
	$(BIN)/python -m tests.support.broker

FUZZ_SECONDS ?= 600
fuzz: need-cargo ## fuzz the decoders, guided by coverage, for FUZZ_SECONDS in all
	@command -v cargo-fuzz >/dev/null || cargo install --locked --quiet cargo-fuzz
	FUZZ_SECONDS=$(FUZZ_SECONDS) fuzz/run.sh

bench: oracle server-oracle franz $(VENV)/built ## our core and its interfaces against other libraries, on Kafka's grid (50 min)
	$(BIN)/python -m benches.run
	$(BIN)/python -m benches.server_side

bench-quick: oracle franz $(VENV)/built ## 14 cells of the grid of `make bench`
	$(BIN)/python -m benches.run --quick

bench-bulk: $(VENV)/built ## groups a second, assigned and planned in bulk; one assignment with each engine
	$(BIN)/python -m pytest -q -s benches --benchmark-columns=median,ops

bench-coordinator: $(VENV)/built ## the group coordinator: requests a second, bytes a member
	$(BIN)/python -m pytest -q -s benches/test_coordinator.py --benchmark-columns=median,ops

bench-simulator: $(VENV)/built ## the simulator: events a second, hours of groups a second (half an hour)
	$(BIN)/python -m pytest -q -s benches/test_simulator.py --benchmark-columns=median,ops

bench-fleet: $(VENV)/built ## 200,000 groups planned on Spark, a log of 10 million records, decoding alone (docs/scale.md)
	$(BIN)/python -m benches.fleet
	$(BIN)/python -m benches.log
	$(BIN)/python -m benches.records

franz: benches/peers/franz/franz
benches/peers/franz/franz: benches/peers/franz/main.go benches/peers/franz/go.mod
	@command -v go >/dev/null || { \
	  echo "Go is needed for franz-go, a peer of the benchmark: 'apt-get install golang'." >&2; exit 1; }
	cd benches/peers/franz && go build -o franz .

CASES ?= 100000
SEED ?= 1
ASSIGNORS ?= range,roundrobin,sticky,cooperative-sticky
differential: oracle server-oracle $(VENV)/built ## oracle = reference = Rust on CASES generated groups
	$(BIN)/python -m tools.differential --cases $(CASES) --assignors $(ASSIGNORS) --seed $(SEED)

differential-bytes: oracle $(VENV)/built ## `make differential` for members as bytes, of every version and library
	$(BIN)/python -m tools.differential --cases $(CASES) --seed $(SEED) --by-bytes

PLANS ?= 500
differential-plans: oracle $(VENV)/built ## PLANS plans, each round also answered by Java's classes
	$(BIN)/python -m tools.differential_plans --plans $(PLANS) --seed $(SEED)

SCRIPTS ?= 20000
differential-connect: connect-oracle $(VENV)/built ## oracle = reference = Rust on SCRIPTS generated Connect scripts
	$(BIN)/python -m tools.differential_connect --scripts $(SCRIPTS) --seed $(SEED)

SEQUENCES ?= 20000
parity-virtual: coordinator-oracle $(VENV)/built ## our coordinator = Kafka's, on SEQUENCES random runs in virtual time
	$(BIN)/python -m tools.differential_coordinator --sequences $(SEQUENCES) --seed $(SEED)
	$(BIN)/python -m tools.differential_coordinator --sequences $(SEQUENCES) --seed $(SEED) --groups assigning
	$(BIN)/python -m tools.differential_coordinator --sequences $(SEQUENCES) --seed $(SEED) --groups share
	$(BIN)/python -m tools.differential_coordinator --sequences $(SEQUENCES) --seed $(SEED) --groups streams
	$(BIN)/python -m tools.differential_coordinator --sequences $$(( $(SEQUENCES) / 10 )) --seed $(SEED) --groups logs

bench-connect: connect-oracle $(VENV)/built ## Connect's incremental leader against the Java class
	$(BIN)/python -m tools.bench_connect

frames: $(VENV)/built build/frames-tools ## tests/test_frames.py: Arrow with polars, DuckDB and pandas 3, in an environment of their own
	PYTHONPATH=python build/frames-tools/bin/python -m pytest -q --noconftest -o addopts=-ra tests/test_frames.py

browser: ## install a headless Chromium for the tests of pages, if the system can
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq \
	    && apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1; } || \
	  echo "No Chromium here: the tests of pages are skipped. Get it with 'apt-get install chromium'." >&2

sample: broker-jars $(VENV)/built ## capture the shipped sample of live groups anew
	$(BIN)/python -m tools.broker.capture

reality: broker-jars $(VENV)/built ## compare the simulator with real consumers on a real broker (about four minutes)
	$(BIN)/python -m tests.reality

CHANGES ?= 112
prediction: broker-jars $(VENV)/built ## plan CHANGES changes, then make them in groups of real members (about 20 minutes)
	$(BIN)/python -m tests.prediction --changes $(CHANGES) --seed $(SEED) --write docs/predictions.txt

pages: $(VENV)/built ## write the generated parts of the pages anew: tables, rooms, API
	$(BIN)/python -m tools.tables
	$(BIN)/python -m tools.rooms
	$(BIN)/python -m tools.api_page

docs: $(VENV)/built $(VENV)/docs-installed ## build the site of the documentation into build/site; fails at a broken link
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "build/site/index.html"

PYTHONS ?=
wheel: need-python need-cargo build/wheel-tools ## build the wheel for Linux x86-64, check it, try it with every Python on the path, or with PYTHONS
	build/wheel-tools/bin/python -m tools.wheel $(PYTHONS)

pictures: $(VENV)/built ## draw the pictures of docs/simulator.md anew
	$(BIN)/python -m tools.pictures

parity: broker-jars $(VENV)/built ## compare our group coordinator with a real broker, answer for answer
	$(BIN)/python -m tests.parity

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
	@$(BIN)/maturin develop --release --extras arrow,spark,kafka,confluent,aiokafka \
	  > $(VENV)/build.log 2>&1 || { cat $(VENV)/build.log >&2; exit 1; }
	@touch $@

$(VENV)/docs-installed: pyproject.toml | $(VENV)/installed
	$(BIN)/pip install --quiet $(call NEEDS_OF,docs)
	@touch $@

build/frames-tools: pyproject.toml | need-python
	$(PYTHON) -m venv $@
	$@/bin/pip install --quiet --upgrade pip
	$@/bin/pip install --quiet --group frames 'pandas>=3' 'pyarrow>=18' pytest

build/wheel-tools: pyproject.toml | need-python
	$(PYTHON) -m venv $@
	$@/bin/pip install --quiet --upgrade pip
	$@/bin/pip install --quiet --group wheel
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
