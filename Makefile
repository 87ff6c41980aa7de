# Everything stays in this checkout: .venv, target/ and build/.
#
#   make build   .venv/bin/ciphermill and the Python package in .venv
#   make run     builds, reproduces the studies, and writes report/index.html: they and every
#                cipher on the machines (`ciphermill run` where the page leaves one out)
#   make test    builds, then runs every test
#   make lint    format and lints of the Rust and the Python code, and its types
#   make check   what to run before a commit: make lint, the unit tests of the Rust code, and
#                a cipher on every machine
#   make test-browser  tests the report in Chromium (installs Playwright in .venv)
#   make test-rtl  proves the hardware of every instruction (installs Yosys in .venv)
#   make schedules  says which kept schedules no loop takes any more, and why, and searches anew
#                for these: within an hour on two cores
#   make types   writes python/ciphermill/measured_types.py after the core's structs
#   make synthesis  synthesises and proves all hardware anew and writes rtl/synthesis.json
#   make synthesis-of-new  the same for hardware that is not in the file yet, in minutes
#   make fuzz    random programs against the reference interpreter, until stopped
#   make readme  writes today's output of the commands in README.md into it
#   make notebooks  runs the notebooks and keeps what they show in them
#   make docs    the documentation site in build/site (installs mkdocs in .venv)
#   make wheel   a wheel in build/wheels that can be installed elsewhere; for another kind of computer
#                with TARGET=aarch64-unknown-linux-gnu and the like (rustup target add it first)
#   make clean   removes all of it again

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export CARGO_TARGET_DIR ?= $(CURDIR)/target
# What Python makes of its packages is kept, whatever the shell's environment says: without it
# half of a short command's time is spent on compiling them.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/cache/bytecode

.PHONY: all build run lint check test test-rust test-python test-browser test-rtl synthesis synthesis-of-new schedules types fuzz readme notebooks docs wheel clean
.DEFAULT_GOAL := build

all: build

# What builds the core comes first: it compiles while the other packages arrive. The
# virtual environment is made again when the list of packages changes.
$(VENV)/building: python/requirements.txt
	@command -v cargo >/dev/null || { echo "make: cargo was not found; install Rust 1.88 or later from https://rustup.rs" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: Python 3.11 or later is needed; say which with make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --constraint python/requirements.txt maturin
	@touch $@

# The list is complete, so nothing need be resolved, and what is imported compiles itself:
# half the processor time of a plain installation.
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile
$(VENV)/packages: $(VENV)/building
	$(PIP) --requirement python/requirements.txt
	@touch $@

# cargo and maturin know what has changed, but asking them costs seconds. The package
# itself is used where it stands: only the core has to be built.
CORE := python/ciphermill/_core.abi3.so
SOURCES := $(shell find crates -name tests -prune -o -type f -print) Cargo.toml Cargo.lock pyproject.toml
MATURIN = PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet

$(CORE): $(VENV)/building $(SOURCES)
	@$(MATURIN) --skip-install
	@touch $@

# The command itself, which finds its packages in place.
$(VENV)/installed: $(VENV)/packages | $(CORE)
	@$(MATURIN)
	@touch $@

build:
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/installed

# Both keep what they have measured below build/cache: a second run takes seconds.
run: build
	@$(BIN)/ciphermill study all
	@$(BIN)/ciphermill report

test: build test-rust test-python
	@echo
	@echo "make test: the Rust tests and the Python tests above have all passed."

$(VENV)/linting: python/requirements-lint.txt $(VENV)/packages
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement python/requirements-lint.txt
	@touch $@

# Needs no build: types of the core are in _core.pyi. The quickest comes first.
lint: $(VENV)/linting
	@for tool in fmt clippy; do cargo $$tool --version >/dev/null 2>&1 || { echo "make: cargo $$tool was not found; rustup component add rustfmt clippy" >&2; exit 1; }; done
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet
	cargo fmt --all --check
	$(BIN)/mypy
	cargo clippy --release --workspace --all-targets --locked --quiet -- -D warnings

# Two minutes at most once everything is built. Each of the measurements is verified.
check: build lint
	cargo test --release --workspace --lib --locked --quiet
	$(BIN)/ciphermill run rc6 --bytes 512

# As the core is built, every check on, so that no crate is compiled a second time for the tests.
test-rust:
	cargo test --release --workspace --tests --locked --quiet

test-python: build
	$(BIN)/python -m pytest --quiet --numprocesses auto --dist worksteal

$(VENV)/browsing: python/requirements-browser.txt $(VENV)/packages
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement python/requirements-browser.txt
	@touch $@

# Needs a Chromium (Debian: apt-get install chromium). Once Playwright is there,
# `make test` runs these tests too.
test-browser: build $(VENV)/browsing
	$(BIN)/python -m pytest --quiet tests/browser

$(VENV)/synthesising: python/requirements-rtl.txt $(VENV)/packages
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement python/requirements-rtl.txt
	@touch $@

# Some minutes, and a first run that compiles Yosys: not part of `make test`.
test-rtl: build $(VENV)/synthesising
	CIPHERMILL_PROVE_ALL=1 $(BIN)/python -m pytest --quiet tests/python/test_rtl.py tests/python/test_synthesis.py

# After a change to an extension's instructions, to rtl/ or to how Yosys is asked.
synthesis: build $(VENV)/synthesising
	$(BIN)/python -c 'from ciphermill import hardware; hardware.record()'

# After an extension has been added: what Yosys was asked before is not asked again.
synthesis-of-new: build $(VENV)/synthesising
	$(BIN)/python -c 'from ciphermill import hardware; hardware.record(again=False)'

# After a change to the code that pipelined loops are made of. The hour is divided among what is
# to be searched; `ciphermill tune` goes on after it.
schedules: build
	$(BIN)/ciphermill tune --mend --minutes 55

# After a change to a struct that a measurement is made of.
types:
	$(BIN)/python tests/python/measured_types.py

fuzz:
	cargo run --release --locked --package ciphermill-differential --bin ciphermill-fuzz

readme: build
	$(BIN)/python tests/python/test_readme.py

# After a change of a figure that they show.
notebooks: build
	$(BIN)/python tests/python/notebooks.py

$(VENV)/documenting: python/requirements-docs.txt $(VENV)/packages
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement python/requirements-docs.txt
	@touch $@

# Fetches nothing: fonts, search and pages are all here.
docs: build $(VENV)/documenting
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "the site is build/site/index.html"

# A target of Linux is linked by zig, against a glibc that every system of ten years has; one of macOS on
# another system, too: zig knows what macOS's library exports. Its package is there from macOS 13 on only.
ZIG = $(if $(findstring linux,$(TARGET)),--zig --compatibility manylinux2014,$(if $(ACROSS),--zig))
ACROSS = $(and $(findstring apple,$(TARGET)),$(filter-out Darwin,$(shell uname -s)))
# To zig's C compiler a date in the code is an error; mimalloc has one.
wheel: $(VENV)/building
	$(if $(ZIG),$(PIP) --constraint python/requirements.txt ziglang)
	CARGO_ZIGBUILD_PYTHON_PATH=$(BIN)/python MACOSX_DEPLOYMENT_TARGET=13.0 CFLAGS="$(CFLAGS) -Wno-date-time" \
		$(BIN)/maturin build --out build/wheels $(if $(TARGET),--target $(TARGET) $(ZIG))

clean:
	rm -rf $(VENV) target build python/ciphermill/_core*.so
