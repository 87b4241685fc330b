# What people do with pdbmux, one word each. `make help` lists them.

.DEFAULT_GOAL := help
CARGO ?= cargo

# What the binary is built for: this machine, with the C library linked in. Naming the target keeps
# build scripts and procedural macros out of that.
TARGET ?= $(shell rustc -vV | sed -n 's/^host: //p')

.PHONY: help
help: ## List these targets
	@awk -F':.*## ' '/^[a-z0-9 ]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Two sample PuppetDBs answered as one, on port 8080
	$(CARGO) run --quiet -- demo

.PHONY: test
test: ## All tests that need nothing but Rust
	$(CARGO) test --quiet --all-features

.PHONY: build
# What random numbers are taken from is not looked for at run time, which needs dynamic linking.
build: export RUSTFLAGS += -C target-feature=+crt-static --cfg getrandom_backend="linux_getrandom"
build: ## The release binary, static, as dist/pdbmux
	$(CARGO) build --release --locked --target $(TARGET) --target-dir target
	install -D target/$(TARGET)/release/pdbmux dist/pdbmux

.PHONY: deb
deb: build ## The Debian package, in dist/
	packaging/debian/build.sh

.PHONY: packages
packages: deb ## Debian package and Kubernetes manifests, checked (as root)
	packaging/check-deb.sh
	packaging/check-service.sh
	deploy/check.sh

.PHONY: run
run: ## Serve with the configuration that is found
	$(CARGO) run --release -- serve

.PHONY: cargo-deny
# The version is the one that deny.toml was written for.
cargo-deny:
	command -v cargo-deny >/dev/null || $(CARGO) install --quiet --locked cargo-deny@0.20.2

.PHONY: lint
lint: cargo-deny ## Format, clippy, docs and dependencies
	$(CARGO) fmt --all --check
	$(CARGO) fmt --all --check --manifest-path fuzz/Cargo.toml
	$(CARGO) fmt --all --check --manifest-path model/Cargo.toml
	$(CARGO) clippy --workspace --all-targets --all-features --quiet
	$(CARGO) clippy --lib --quiet -- -D warnings # As it is released.
	! git grep -l 'allow(unsafe_code)' -- '*.rs' | grep -v '^core/src/json/simd\.rs$$'
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --all-features --no-deps --document-private-items --quiet
	$(CARGO) check --quiet --manifest-path fuzz/Cargo.toml
	$(CARGO) deny --all-features --log-level error check bans licenses sources

.PHONY: model
model: ## The shared flights under many schedules of their tasks
	$(CARGO) run --quiet --manifest-path model/Cargo.toml

.PHONY: rig
rig:
	e2e/setup.sh
	$(CARGO) test --quiet -p pdbmux-e2e --no-run

.PHONY: e2e
e2e: rig build ## The tests on real PuppetDBs and real clients (Debian or Ubuntu, as root)
	PDBMUX_E2E_BIN=$(CURDIR)/dist/pdbmux $(CARGO) test --quiet -p pdbmux-e2e

.PHONY: oracle
oracle: ## The score of merge: exact against the oracle, by feature (as e2e)
	e2e/setup.sh
	$(CARGO) build --release
	$(CARGO) run --quiet -p pdbmux-e2e --bin oracle

.PHONY: cost
cost: ## What merge: exact costs on 5,000 nodes that both backends hold (as e2e)
	e2e/setup.sh
	$(CARGO) build --release
	$(CARGO) run --quiet -p pdbmux-e2e --bin cost

.PHONY: bench
bench: ## What pdbmux costs beside nginx, as one table (Debian or Ubuntu, as root)
	bench/setup.sh
	$(MAKE) build
	$(CARGO) run --release --quiet -p pdbmux-bench -- --binary dist/pdbmux $(BENCH)

.PHONY: bench-core
bench-core: ## Benchmarks of the core, and of a backend out of service
	$(CARGO) bench -p pdbmux-core
	$(CARGO) bench --bench dead_backend

.PHONY: instructions instructions-update
instructions: ## The instructions that the core takes, against those committed (as root, for valgrind)
	core/benches/instructions.sh

instructions-update: ## Commit what the core takes now
	core/benches/instructions.sh update

# Seconds that each fuzz target runs.
FUZZ_SECONDS ?= 60

.PHONY: fuzz
fuzz: ## Each fuzz target for FUZZ_SECONDS (needs cargo-fuzz)
	cd fuzz && for target in $$($(CARGO) fuzz list --fuzz-dir .); do \
		mkdir -p corpus/$$target && \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run --fuzz-dir . $$target corpus/$$target seeds/$$target \
			-- -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

.PHONY: patch minor major
patch minor major: ## Release: raise this part of the version, commit and tag
	packaging/release.sh $@
