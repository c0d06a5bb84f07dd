# make run · build · test · lint · fuzz: the whole vocabulary.
#
#   make run                  builds and starts the platform with its demo tenant; everything it keeps is in ./data
#   make dev                  the same without optimisation: what has changed runs within seconds
#   make test                 everything that CI checks; installs what it needs with apt and pip first
#   make fuzz FUZZ_SECONDS=3600 FUZZ_TARGETS=mqtt_packet
#   make bench                measures everything against what the machine can do: bench-out/ keeps the reports
#   make bench BENCH="a c" BENCH_SECONDS=20
#
# Runs of the end-to-end tests that take long, or are larger than what make test does:
#   make kill KILLS=200               kill -9 under load, so many times
#   make overload OVERLOAD_MINUTES=10 ten times what can be sustained
#   make soak SOAK_MINUTES=30         half of the greatest load
#   make scale SCALE_SECONDS=60 SCALE_KILLS=25  each of Kafka, PostgreSQL and Cassandra frozen, killed and cut off for so long,
#                                     PostgreSQL set back by SCALE_BACK_SECONDS, full disks
#   make test-cassandra CASSANDRA_VERSION=4.1.10  the program on another release of Cassandra
#   make pause PAUSE_SECONDS=20       a process that is stopped for a while
#   make test-hostile HOSTILE_SECONDS=60  each attack of a hostile tenant for so long
#   make devices DEVICES=1000000 CONNECTED=15000
#   make test-e2e-scale               the end-to-end tests once more, each server on a Kafka, a PostgreSQL and a Cassandra
#   make run-scale                    Fieldline on a Kafka, a PostgreSQL and a Cassandra of the moment, with the demo tenant
#   make test-kafka-tls               the journal on a Kafka that speaks TLS and asks for users
#   make test-cassandra-tls           the same of time series in Cassandra

DATA ?= data
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=
# Groups of benches/table.py, all if none are named, and the length of each load.
BENCH ?=
BENCH_SECONDS ?= 5
# Further arguments of pytest, for example PYTEST="-k kill".
PYTEST ?=
KILLS ?= 200
OVERLOAD_MINUTES ?= 10
SOAK_MINUTES ?= 30
PAUSE_SECONDS ?= 20
SCALE_SECONDS ?= 60
SCALE_KILLS ?= 25
SCALE_BACK_SECONDS ?= 30
# Some, such as "kafka_killed postgres_frozen", or all of them.
SCALE_FATES ?= all
CASSANDRA_VERSION ?= 4.1.10
HOSTILE_SECONDS ?= 5
DEVICES ?= 1000000
CONNECTED ?= 15000
BINARY = target/release/fieldline
E2E = FIELDLINE_BIN=$(BINARY) tests/e2e/.venv/bin/pytest -c tests/e2e/pytest.ini --rootdir tests/e2e

.PHONY: run run-scale dev build ui test-ui test lint format fuzz bench test-install test-browser test-rust test-postgres test-services test-kafka-tls test-cassandra-tls test-cassandra test-attacks test-e2e test-e2e-scale test-hostile kill overload soak pause scale devices
.NOTPARALLEL:

run: build
	@exec $(BINARY) serve --demo --data-dir $(DATA)

# On a Kafka, a PostgreSQL and a Cassandra of the moment, which end with it.
run-scale: build
	@tests/services/with-kafka.sh tests/services/with-postgres.sh tests/services/with-cassandra.sh \
		tests/services/run-scale.sh $(BINARY)

dev:
	cargo build --locked --bin fieldline
	@exec target/debug/fieldline serve --demo --data-dir $(DATA)

build: ui
	cargo build --release --locked --bin fieldline

# The user interface, packed into the program by crates/web. UI=no leaves it out; then only the API is served.
UI ?= yes
UI_FILES = crates/web/ui/files
ui:
ifeq ($(UI),no)
	@rm -rf $(UI_FILES)
else
	@node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' 2>/dev/null || { \
		echo "The web user interface needs Node.js 20 or newer: install it, or go on without by: make $(or $(MAKECMDGOALS),run) UI=no"; exit 1; }
	@web/build.sh $(UI_FILES)
endif

lint: format test-install
	cargo clippy --workspace --all-targets --locked -- -D warnings

format: test-install
	cargo fmt --all --check
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	cd tests/e2e && .venv/bin/ruff check --quiet && .venv/bin/ruff format --check --quiet

# What clippy has to say is said while the tests are compiled. The end-to-end tests come last, so that the last line says how
# many tests there were. What is fuzzed for so short a time is worth little of the compiler's.
test: test-install format test-ui test-rust test-postgres test-services
	CARGO_PROFILE_RELEASE_OPT_LEVEL=1 tests/fuzz.sh 10
	$(MAKE) --no-print-directory test-attacks test-browser test-e2e

test-install:
	tests/install.sh

# Types, pure parts and sizes of the user interface.
test-ui: ui
	cd web && npm run --silent check && npm run --silent test -- --silent && npm run --silent size

# The user interface in a browser, with the built binary.
test-browser: test-install build
	cd web && FIELDLINE_BIN=$(abspath $(BINARY)) npm run --silent e2e

# Clippy is the compiler of what is our own, warnings are errors: compiling all for clippy alone as well would take half as long again.
CARGO_TEST = RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings cargo test --workspace --locked --quiet

test-rust: test-install
	$(CARGO_TEST)

# Tests that are ignored unless what they need is there, by a part of their names. All of the workspace is named although few of
# its tests are meant: for a single package cargo would choose other features of the dependencies, and build them all again.
IGNORED_TESTS = $(CARGO_TEST) --tests -- --ignored

# The contract suites of the SQL stores once more, on PostgreSQL.
test-postgres: test-install
	tests/services/with-postgres.sh env $(IGNORED_TESTS) postgres

# The clients of outside services and the rule nodes that use them, each against a real one. A test of PostgreSQL may have the
# service's name in its own, and is left out.
test-services: test-install
	for pair in mosquitto:mqtt smtp:smtp rabbitmq:rabbitmq kafka:kafka; do \
		tests/services/with-$${pair%:*}.sh env $(IGNORED_TESTS) $${pair#*:} --skip ::postgres:: || exit 1; \
	done
	tests/services/with-postgres.sh tests/services/with-cassandra.sh env $(IGNORED_TESTS) cassandra --test-threads 4

# TLS and users of Kafka, which packages have: builds OpenSSL, so that it is no part of make test.
test-kafka-tls:
	tests/services/with-kafka.sh cargo test -p fieldline-journal --features kafka-tls --test kafka --locked --quiet -- --ignored

# TLS and users of Cassandra: builds a second library of cryptography, so that it is no part of make test.
test-cassandra-tls:
	CASSANDRA_TLS=1 tests/services/with-cassandra.sh cargo test -p fieldline-storage --features cassandra-tls --lib --locked \
		--quiet -- --ignored tls

# With the built binary, real clients, crashes and full disks. Most tests wait for something most of the time, so that there are
# more workers than processors.
test-e2e: test-install build
	$(E2E) tests/e2e -m "not hostile and not long" --numprocesses 4 --dist loadgroup --no-loadscope-reorder --quiet $(PYTEST)

# The same with every server that does not choose for itself on the three. What is about the files of the data directory is left out.
test-e2e-scale: test-install build
	tests/services/with-kafka.sh tests/services/with-postgres.sh env CASSANDRA_HEAP=1g tests/services/with-cassandra.sh env E2E_ENGINES=scale \
		$(E2E) tests/e2e -m "not hostile and not long and not files" --numprocesses 2 --dist loadgroup --no-loadscope-reorder --quiet $(PYTEST)

# A hostile tenant beside an innocent one, attack by attack, held to all but times.
test-attacks: test-install build
	HOSTILE_SECONDS=2 HOSTILE_TIMED= $(E2E) tests/e2e/test_hostile_tenants.py --numprocesses 2 --quiet $(PYTEST)

# The same held to times as well: what the innocent one feels is measured, so that nothing else may run meanwhile.
test-hostile: test-install build
	HOSTILE_SECONDS=$(HOSTILE_SECONDS) $(E2E) tests/e2e/test_hostile_tenants.py --quiet $(PYTEST)

kill: test-install build
	KILLS=$(KILLS) $(E2E) -s tests/e2e/test_kill_loop.py -k by_kills

overload: test-install build
	OVERLOAD_MINUTES=$(OVERLOAD_MINUTES) $(E2E) -s tests/e2e/test_overload.py -k sustainable

soak: test-install build
	SOAK_MINUTES=$(SOAK_MINUTES) $(E2E) -s tests/e2e/test_soak.py

pause: test-install build
	PAUSE_SECONDS=$(PAUSE_SECONDS) $(E2E) -s tests/e2e/test_pause.py

scale: test-install build
	SCALE_SECONDS=$(SCALE_SECONDS) SCALE_KILLS=$(SCALE_KILLS) SCALE_BACK_SECONDS=$(SCALE_BACK_SECONDS) \
		SCALE_FATES="$(SCALE_FATES)" $(E2E) -s tests/e2e/test_scale_fates.py tests/e2e/test_scale_losses.py tests/e2e/test_kafka.py \
		tests/e2e/test_cassandra.py $(PYTEST)

test-cassandra: test-install build
	CASSANDRA_VERSION=$(CASSANDRA_VERSION) $(E2E) -s tests/e2e/test_cassandra.py tests/e2e/test_scale_fates.py $(PYTEST)

devices: test-install build
	DEVICES=$(DEVICES) CONNECTED=$(CONNECTED) $(E2E) -s tests/e2e/test_many_devices.py

fuzz:
	tests/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)

bench: build
	BENCH_SECONDS=$(BENCH_SECONDS) python3 benches/table.py $(BENCH)
