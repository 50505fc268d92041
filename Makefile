.PHONY: run test bench instructions figures reproduce mutants

run: ## the built-in study, and its report
	cargo run --release --bin radmm -- run --out results

test: ## formatting, lints, documentation and all tests
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
	cargo test --workspace

bench: ## side-by-side measurements, and the numbers of docs/benchmarks.md; ONLY="steps threads" makes some and writes nothing
	cargo bench -p radmm-table --bench table -- $(ONLY)

instructions: ## no kernel takes 5 % more instructions than bench/instructions.txt has; RADMM_BLESS=1 records them
	scripts/instructions

reproduce: ## the paper's figures, and the pictures of docs/reproduction.md
	cargo run --release --bin radmm -- reproduce --out radmm-reproduced
	cp radmm-reproduced/fig*.svg docs/images/

figures: ## the pictures in docs/, from runs
	cargo run --release -p radmm-lab --example figures

mutants: ## faults put into the sources, each of which the audit must find
	scripts/mutants
