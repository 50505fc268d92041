# Everything but the Python package, which needs a Python interpreter.
RUST := --workspace --exclude radmm-py

.PHONY: run test campaign wheel test-python test-page test-postgres bench instructions tables compare-python figures reproduce mutants book deb test-deb test-service static container

run: ## runs the built-in study and writes its report
	cargo run --release --bin radmm -- run --out results

test: ## checks formatting, lints and documentation, and runs all tests
	cargo fmt --all --check
	cargo clippy $(RUST) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(RUST) --no-deps
	cargo test $(RUST)

WHEELS := target/wheels
PYTHON := target/python/bin/python

wheel: ## builds the Python package into target/wheels; needs Python 3.11 or later
	scripts/package/build wheel

test-python: wheel ## checks the Python package in a fresh virtual environment: lints, types, tests, notebooks
	cargo clippy -p radmm-py --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc -p radmm-py --no-deps --document-private-items
	rm -rf target/python
	python3 -m venv target/python
	$(PYTHON) -m pip install --quiet -r crates/radmm-py/requirements-test.txt
	$(PYTHON) -m pip install --quiet --force-reinstall --no-deps $(WHEELS)/radmm-*.whl
	cd crates/radmm-py && ../../$(PYTHON) -m ruff check . && ../../$(PYTHON) -m ruff format --check .
	cd crates/radmm-py && ../../$(PYTHON) -m mypy python/radmm && ../../$(PYTHON) -m mypy.stubtest radmm._radmm --mypy-config-file pyproject.toml
	cd crates/radmm-py && ../../$(PYTHON) -m pytest

test-page: ## drives the pages of nodes in a real Chromium; PICTURES=folder keeps pictures of them
	@for program in chromium chromedriver; do command -v $$program > /dev/null || { echo "error: $$program is not installed; install it with: apt-get install chromium chromium-driver" >&2; exit 2; }; done
	$(if $(PICTURES),mkdir -p $(PICTURES) && RADMM_PICTURES=$(abspath $(PICTURES))) cargo test -p radmm-cli --test page_in_browser -- --ignored --test-threads 1

test-postgres: ## goes from a PostgreSQL server of its own to a model: the commands of docs/database.md, word for word
	@PATH="$$PATH:$$(echo /usr/lib/postgresql/*/bin | tr ' ' :)"; for program in psql initdb postgres; do command -v $$program > /dev/null || { echo "error: $$program is not installed; install it with: apt-get install postgresql" >&2; exit 2; }; done
	cargo test -p radmm-cli --test postgres -- --ignored

campaign: ## disturbs, damages and starves real parties some 1,900 times and prints what came of it, in some minutes; Linux; SEED=n repeats its choices
	@command -v prlimit > /dev/null || { echo "error: prlimit is not installed; install it with: apt-get install util-linux" >&2; exit 2; }
	$(if $(SEED),SEED=$(SEED)) cargo test -p radmm-cli --test campaign -- --ignored --nocapture

bench: ## makes all measurements and writes them into docs/benchmarks.md and docs/scale.md; ONLY="steps scale" makes some, and writes docs/scale.md alone
	cargo bench -p radmm-table --bench table -- $(ONLY)

instructions: ## fails if a kernel takes 5 % more instructions than in bench/instructions.txt; RADMM_BLESS=1 records the counts
	scripts/instructions

reproduce: ## reproduces the paper's figures and updates the pictures of docs/reproduction.md
	cargo run --release --bin radmm -- reproduce --out radmm-reproduced
	cp radmm-reproduced/fig*.svg docs/images/

tables: ## measures accuracy on twelve public tables beside scikit-learn and diffprivlib, for docs/accuracy.md; needs Python 3.11 or 3.12
	cargo build --release --bin radmm
	python3 -m venv target/tables-venv
	target/tables-venv/bin/pip install --quiet -r bench/peers/requirements-private.txt
	python3 scripts/tables/accuracy.py target/release/radmm target/tables target/tables-venv/bin/python

COMPARISON := target/compare-python

compare-python: ## measures the Python package beside diffprivlib on four tables, and writes the results into docs/accuracy.md; needs Python 3.11 or 3.12 and takes the wheel of `make wheel`
	@ls $(WHEELS)/radmm-*.whl > /dev/null 2>&1 || $(MAKE) wheel
	python3 -m venv $(COMPARISON)/new
	$(COMPARISON)/new/bin/pip install --quiet -r bench/python/requirements.txt
	$(COMPARISON)/new/bin/pip install --quiet --force-reinstall --no-deps $(WHEELS)/radmm-*.whl
	python3 -m venv $(COMPARISON)/old
	$(COMPARISON)/old/bin/pip install --quiet -r bench/peers/requirements-private.txt
	python3 -B bench/python/compare.py $(COMPARISON)/new/bin/python $(COMPARISON)/old/bin/python $(COMPARISON)/tables --page docs/accuracy.md --json $(COMPARISON)/results.json

figures: ## draws the pictures in docs/ from runs
	cargo run --release -p radmm-lab --example figures

mutants: ## puts faults into a copy of the sources and checks that the audit, or a unit test, finds each of them
	scripts/mutants

book: ## builds docs/ as a book in target/book
	@command -v mdbook > /dev/null || { echo "error: mdbook is not installed; install it with: cargo install mdbook" >&2; exit 1; }
	mdbook build
	@# Links that leave docs/ lead to the files of this repository.
	@perl -pi -e 's{href="\.\./(.*?)"}{"href=\"../../" . ($$1 =~ s/\.html$$/.md/r) . "\""}ge' target/book/*.html

deb: ## builds the Debian package in target/package
	scripts/package/deb

test-deb: ## builds the Debian package and checks it: bytes, contents, man pages, completions, service, lintian
	scripts/package/test-deb

test-service: ## boots a Debian system in a container, installs the package and runs three parties as services; needs root
	scripts/package/test-service

static: ## builds a binary that needs no library, and checks it in an empty root
	scripts/package/static

container: ## builds the container image with podman, docker or buildah; BINARY=prebuilt takes the binary of `make static`
	scripts/package/container $(BINARY)
