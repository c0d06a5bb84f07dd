# make run · build · test · lint · fuzz: the whole vocabulary.
#
#   make run                  builds and starts the platform with its demo tenant; everything it keeps is in ./data
#   make test                 everything that CI checks; installs what it needs with apt and pip first
#   make fuzz FUZZ_SECONDS=3600 FUZZ_TARGETS=mqtt_packet

DATA ?= data
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=
# Further arguments of pytest, for example PYTEST="-k kill".
PYTEST ?=
BINARY = target/release/fieldline

.PHONY: run build test lint fuzz test-install test-rust test-postgres test-e2e
.NOTPARALLEL:

run: build
	@exec $(BINARY) serve --demo --data-dir $(DATA)

build:
	cargo build --release --locked --bin fieldline

lint: test-install
	cargo fmt --all --check
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cd tests/e2e && .venv/bin/ruff check --quiet && .venv/bin/ruff format --check --quiet

# The end-to-end tests come last, so that the last line says how many tests there were.
test: test-install lint test-rust test-postgres
	tests/fuzz.sh 20
	$(MAKE) --no-print-directory test-e2e

test-install:
	tests/install.sh

test-rust:
	cargo test --workspace --locked --quiet

# The contract suites of the SQL stores once more, on PostgreSQL.
test-postgres:
	tests/services/with-postgres.sh cargo test --package fieldline-storage --locked --quiet -- --ignored postgres

# With the built binary, real clients, crashes and full disks.
test-e2e: test-install build
	FIELDLINE_BIN=$(BINARY) tests/e2e/.venv/bin/pytest -c tests/e2e/pytest.ini --rootdir tests/e2e tests/e2e $(PYTEST)

fuzz:
	tests/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)
