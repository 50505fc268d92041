.PHONY: run test bench figures

run: ## the built-in study
	cargo run --release --bin radmm -- run

test: ## formatting, lints, documentation and all tests
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
	cargo test --workspace

bench: ## side-by-side measurements
	cargo bench -p radmm-bench

figures: ## the pictures in docs/, from runs
	cargo run --release -p radmm-lab --example figures
