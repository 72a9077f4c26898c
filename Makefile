# `make help` lists the targets. PYTHON=python3.12 chooses the interpreter of .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RESULTS := bench/results
# These ask for `tensorflow`, which would overwrite tensorflow-cpu: they are installed without what they ask for.
BESIDE := tensorflow-text==2.21.1 tf-keras==2.21.0 tensorflow-serving-api==2.21.0
VERSIONS ?= 2.16.2 2.17.1 2.18.1 2.19.1 2.20.0 2.22.0rc0
FUZZ_SECONDS ?= 120

.PHONY: help install demo test test-all fuzz check lint docs bench test-versions test-models models-environments test-programs test-keras chromium clean

help:
	@echo 'make demo            a tour: stock TensorFlow against Glowplug on a small model'
	@echo 'make test            the tests that take seconds'
	@echo 'make test-all        all tests'
	@echo 'make fuzz            the fuzz targets, $(FUZZ_SECONDS) seconds each, with atheris'
	@echo 'make lint            format, lint, types, layers'
	@echo 'make docs            write the generated parts of the documentation again'
	@echo 'make check           lint, generated documentation up to date, tests'
	@echo 'make bench           all benchmarks, into $(RESULTS)'
	@echo 'make test-versions   a core set of tests with TensorFlow $(VERSIONS)'
	@echo 'make test-programs   programs of keras.io, stock and twice under run: KERAS_IO=checkout of keras-team/keras-io'
	@echo 'make test-keras      tests of Keras itself, stock and twice under train.enable()'
	@echo 'make test-models     packs models of other projects, in environments of their own; the table goes to $(RESULTS)'
	@echo 'make chromium        the Debian package that the browser tests need'

# Bytecode is made here, once: with PYTHONDONTWRITEBYTECODE set, Python would compile every module at each start, and
# both sides of each comparison would be slower than they are for users.
$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv --without-pip $(VENV)
	test -x $(BIN)/uv || { $(BIN)/python -m ensurepip >/dev/null 2>&1 && $(BIN)/python -m pip install --quiet uv; } || \
	  $(PYTHON) -m pip --python $(BIN)/python install --quiet uv || \
	  { echo '$(PYTHON) has neither ensurepip nor pip: install them (Debian: python3-venv), or set PYTHON' >&2; exit 1; }
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode -e '.[cpu,dev]'
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --no-deps $(BESIDE) || \
	  echo 'the tests that need $(BESIDE) will be skipped'
	touch $@

install: $(READY)
	@$(BIN)/python -m compileall -q src

demo: install
	@$(BIN)/glowplug demo

test: install
	$(BIN)/python -m pytest -n auto --dist loadgroup -m 'not slow'

test-all: install
	$(BIN)/python -m pytest -n auto --dist loadgroup

# atheris changes the bytecode of what it watches, and has wheels for few interpreters: an environment of its own.
fuzz: install
	test -x .venvs/fuzz/bin/python || $(PYTHON) -m venv --without-pip .venvs/fuzz
	$(BIN)/uv pip install --quiet --python .venvs/fuzz/bin/python atheris ml_dtypes -e '.[serve]'
	set -e; for target in bundle tensor_proto; do \
	  .venvs/fuzz/bin/python tests/fuzz/fuzz_$$target.py -max_total_time=$(FUZZ_SECONDS); \
	done

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)
	$(BIN)/python docs/make_cli_reference.py
	$(BIN)/python docs/make_error_reference.py
	$(BIN)/python bench/readme_table.py

check: lint
	$(BIN)/python docs/make_cli_reference.py --check
	$(BIN)/python docs/make_error_reference.py --check
	$(BIN)/python bench/readme_table.py --check
	$(MAKE) test

bench: install
	$(BIN)/python bench/first_prediction.py
	$(BIN)/python bench/steady.py
	$(BIN)/python bench/memory.py
	$(BIN)/python bench/pack.py
	$(BIN)/python bench/train_start.py
	$(BIN)/python bench/train_weights.py
	$(BIN)/python bench/train_loops.py
	$(BIN)/python bench/train_initializers.py
	$(BIN)/python bench/run_start.py import
	for name in http ready throughput peers swap kill soak; do $(BIN)/python bench/serve_$$name.py || exit 1; done
	$(BIN)/python bench/standby_start.py
	$(BIN)/python bench/readme_table.py

test-versions: $(READY)
	set -e; for version in $(VERSIONS); do \
	  echo "TensorFlow $$version"; \
	  environment=.venvs/tensorflow-$$version; \
	  test -x $$environment/bin/python || $(PYTHON) -m venv --without-pip $$environment; \
	  $(BIN)/uv pip install --quiet --python $$environment/bin/python --compile-bytecode \
	    "tensorflow-cpu==$$version" 'keras>=3' pytest pytest-timeout hypothesis jsonschema psutil safetensors -e '.[report]'; \
	  $(BIN)/uv pip install --quiet --python $$environment/bin/python --compile-bytecode --no-deps \
	    "tf-keras==$${version%.*}.0" || echo "there is no tf-keras for $$version: the tests that need it are skipped"; \
	  $$environment/bin/python -m pytest -m 'core and not slow' tests/runtime tests/loader tests/convert tests/cli \
	    tests/imports tests/probe; \
	done

# What the programs import besides TensorFlow. None of it may ask for `tensorflow`, which would overwrite tensorflow-cpu.
PROGRAM_PACKAGES := matplotlib pandas scikit-learn scipy pillow tqdm tensorboard tensorflow-datasets

.venvs/programs/.ready: pyproject.toml $(READY)
	test -x .venvs/programs/bin/python || $(PYTHON) -m venv .venvs/programs
	$(BIN)/uv pip install --quiet --python .venvs/programs/bin/python --compile-bytecode -e '.[cpu,report]' $(PROGRAM_PACKAGES)
	touch $@

test-programs: .venvs/programs/.ready
	test -d '$(KERAS_IO)/examples' || { echo 'KERAS_IO must be a checkout of keras-team/keras-io'; exit 2; }
	.venvs/programs/bin/python -m tests.programs.harness '$(KERAS_IO)' $(PROGRAMS)

# Some of Keras' tests import jax, with which TensorFlow's converter loads it too: an environment of its own.
test-keras: $(READY)
	test -x .venvs/keras/bin/python || $(PYTHON) -m venv .venvs/keras
	$(BIN)/uv pip install --quiet --python .venvs/keras/bin/python --compile-bytecode -e '.[cpu,report]' jax pandas scipy pytest
	.venvs/keras/bin/python -m tests.programs.keras_tests

# Projects that ask for `tensorflow` are installed beside tensorflow-cpu without what they ask for.
models-environments: $(READY)
	set -e; install="$(BIN)/uv pip install --quiet --compile-bytecode --python"; \
	for name in hub hf legacy forests; do \
	  test -x .venvs/models-$$name/bin/python || $(PYTHON) -m venv .venvs/models-$$name; \
	done; \
	$$install .venvs/models-hub/bin/python 'tensorflow-cpu==2.21.0' 'keras>=3' kagglehub regex rich tokenizers pillow -e .; \
	$$install .venvs/models-hub/bin/python --no-deps keras-hub tensorflow-text==2.21.1; \
	$$install .venvs/models-hf/bin/python 'tensorflow-cpu==2.19.1' tf-keras==2.19.0 'transformers<4.56' 'huggingface-hub<1' \
	  sentencepiece -e .; \
	$$install .venvs/models-legacy/bin/python 'tensorflow-cpu==2.19.1' tf-keras==2.19.0 cloudpickle decorator dm-tree gast \
	  scipy scikit-learn networkx joblib tqdm lxml pandas requests typeguard kt-legacy -e .; \
	$$install .venvs/models-legacy/bin/python --no-deps tensorflow-probability tensorflow-recommenders tensorflow-ranking \
	  spektral tf-agents keras-tuner efficientnet image-classifiers keras-applications keras-tcn deepctr; \
	$$install .venvs/models-forests/bin/python tensorflow-decision-forests 'ydf<0.12' -e .

test-models: models-environments
	$(BIN)/python tests/projects/run.py --times

chromium:
	@if command -v chromium >/dev/null; then echo 'chromium is there'; \
	elif [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq chromium; \
	else echo 'chromium needs root: sudo apt-get install -y chromium; until then the browser tests are skipped'; fi

clean:
	rm -rf $(VENV) .venvs bench/.cache
