# Thin: each target calls cargo or a script. `make help` lists them.

# rustup puts cargo here; a shell opened before rustup ran does not know it yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run ci test test-long check house deny bench rivals rivals-smoke hello docs page python guide system fuzz tsan \
	miri mutants clean cargo linters

# With all members' features, so that what it depends on is not built again for the tests.
XTASK := cargo build --quiet --locked --workspace --bin xtask && $${CARGO_TARGET_DIR:-target}/debug/xtask

# Not the program's: its pages would take the place of the library's, which has the same name.
DOC := cargo doc --locked --workspace --exclude lanecast-cli --no-deps

# The crates whose orderings the model checker explores. `cargo xtask suite` builds the same.
LOOM := cargo test --locked --config tests/loom.toml --lib \
	-p lanecast-base -p lanecast-os -p lanecast-ring -p lanecast-shm

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | \
	while IFS='|' read -r name what; do printf '%-16s %s\n' "$$name" "$$what"; done

run: cargo ## Build lanecast and show what it does, with real processes
	cargo run --locked --release -p lanecast-cli -- demo

test: cargo ## All tests: unit, property, documentation, conformance, killer, loom, pages, clients
	$(XTASK) suite

ci: cargo linters ## test, with lints, documentation and the house's own checks: CI calls it
	$(XTASK) suite --check

test-long: cargo ## The same, optimised, with more cases, more rounds and more interleavings
	LONG_TESTS=1 PROPTEST_CASES=20000 cargo test --locked --release --workspace \
	--exclude lanecast-system-tests -- --include-ignored
	LONG_TESTS=1 bash tests/system.sh
	LOOM_MAX_PREEMPTIONS=3 $(LOOM)

deny: cargo ## Licences, sources, duplicates and advisories of dependencies, by cargo deny
	bash tests/deny.sh

check: house ## Formatting, lints, documentation and the house's own checks
	bash tests/lint.sh

house: cargo linters ## The checks that compile nothing of lanecast: formatting, tidy, dependencies
	env -u RUSTUP_TOOLCHAIN cargo fmt --all --check
	$(XTASK) tidy
	cargo fetch --quiet --locked --manifest-path fuzz/Cargo.toml
	bash tests/deny.sh

bench: cargo ## Micro-benchmarks
	cargo bench --locked -p lanecast-ring -p lanecast-shm -p lanecast-measure -p lanecast-journal -p lanecast-store -p lanecast-filter -p lanecast-sow
	cargo bench --locked -p lanecast --bench patterns

rivals: cargo ## Figures side by side with other messaging libraries
	bash bench/rivals/run.sh

rivals-smoke: cargo ## Does that comparison work at all? Unoptimised, without the large peers
	PROFILE=dev bash bench/rivals/run.sh --smoke --peers unix,pipe,std --rows rate,latency,queue \
	$(if $(BUILT),--lanecast $(BUILT)/lanecast)
	PROFILE=dev bash bench/rivals/run.sh --smoke --peers udp,tcp --network --loopback
	if [ "$$(id -u)" = 0 ]; then PROFILE=dev bash bench/rivals/run.sh --smoke --groups \
	$(if $(BUILT),--lanecast $(BUILT)/lanecast); fi
	PROFILE=dev bash bench/rivals/run.sh --smoke --stores --peers lanecast \
	$(if $(BUILT),--lanecast $(BUILT)/lanecast)
	PROFILE=dev bash bench/rivals/run.sh --test

hello: cargo ## The shortest program of lanecast and of each peer, compiled, compared and run
	PROFILE=dev bash bench/rivals/run.sh --hello

docs: cargo ## The reference documentation, in target/doc
	$(DOC)
	@echo "open target/doc/lanecast/index.html"

guide: cargo ## The guide as a book, in target/guide (installs mdBook below target/ at first)
	@test -x target/tools/bin/mdbook || \
	cargo install --quiet --locked --root target/tools mdbook --version 0.5.4
	target/tools/bin/mdbook build docs/guide
	@echo "open target/guide/index.html"

page: cargo ## Pages in headless Chromium: reports, the example (part of test; skipped without it)
	bash tests/page.sh
	bash tests/browser.sh

python: cargo ## The Python client, installed into an environment of its own, and its types
	bash tests/python.sh --install

system: cargo ## The tests between hosts (part of test; need root, install ip and nft)
	bash tests/system.sh

fuzz: cargo ## Every fuzz target for a minute (SECONDS_EACH=... for longer)
	bash tests/fuzz.sh

tsan: cargo ## The programs crates/*/examples/tsan_*.rs under ThreadSanitizer
	bash tests/tsan.sh

miri: cargo ## The rings' unit tests under Miri (needs nightly; takes minutes)
	@cargo +nightly miri --version >/dev/null 2>&1 || { \
	echo "nightly Miri is missing: rustup toolchain install nightly -c miri -c rust-src"; exit 1; }
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test \
	-p lanecast-ring --lib --target-dir target/miri rings

mutants: cargo ## Does loom notice every weakened memory ordering?
	$(XTASK) mutate-orderings

clean: cargo ## Remove everything that was built
	cargo clean
	rm -rf bench/rivals/target fuzz/target

cargo:
	@command -v cargo >/dev/null || { \
	echo "cargo is missing. Install Rust 1.90 or newer, the stable toolchain is enough:"; \
	echo "  see https://rustup.rs (its one-line installer needs curl: apt-get install curl)"; \
	echo "then run make again."; exit 1; }

# rustup's minimal profile comes without them.
linters: cargo
	@{ env -u RUSTUP_TOOLCHAIN cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 || \
	env -u RUSTUP_TOOLCHAIN rustup component add rustfmt clippy || { \
	echo "cargo fmt or cargo clippy is missing: install your distribution's rustfmt and clippy"; \
	exit 1; }
