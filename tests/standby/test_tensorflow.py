"""TensorFlow and Keras through a standby: the real preload list, in a few tests since it takes seconds to start."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow

PRELOAD = "tensorflow,keras"


@pytest.fixture(scope="module")
def warm(make_standby, tmp_path_factory):
    with tempfile.TemporaryDirectory(prefix="standby-") as directory:
        Path(directory).chmod(0o700)
        found = make_standby(Path(directory), tmp_path_factory.mktemp("scripts"))
        yield lambda *words, **options: found.run(*words, preload=PRELOAD, timeout=120, **options)
        (one,) = json.loads(found.glowplug("standby", "status", "--json").stdout)["standbys"]
        assert (one["threads"], one["runs"]) == (1, [])
        found.glowplug("standby", "stop")


def test_a_layer_answers_and_children_draw_different_weights(warm):
    code = """
import sys
assert not {'tensorflow', 'keras', 'numpy', 'absl'} & set(sys.modules)
import keras, tensorflow as tf
print(keras.layers.Dense(4)(keras.ops.ones((2, 3))).shape)
print(tf.random.normal([]).numpy(), keras.random.normal([]).numpy())
"""
    first, second = (warm("-c", code) for _ in range(2))
    assert first.stdout.startswith("(2, 4)\n"), first.stderr
    assert not set(first.stdout.split()[2:]) & set(second.stdout.split()[2:])


def test_devices_and_threads_can_still_be_chosen(warm):
    code = """
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.set_logical_device_configuration(tf.config.list_physical_devices('CPU')[0],
    [tf.config.LogicalDeviceConfiguration()] * 2)
print(len(tf.config.list_logical_devices('CPU')), float(tf.reduce_sum(tf.ones([3, 3]) @ tf.ones([3, 3]))))
"""
    done = warm("-c", code)
    assert done.stdout == "2 27.0\n", done.stderr


def test_training_works_and_a_model_can_be_saved(warm, tmp_path):
    code = """
import keras, numpy as np
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, activation='relu'), keras.layers.Dense(1)])
model.compile('sgd', 'mse')
history = model.fit(np.ones((8, 4)), np.ones((8, 1)), epochs=2, verbose=0).history['loss']
model.save('m.keras')
print(history == sorted(history, reverse=True), keras.models.load_model('m.keras').count_params())
"""
    done = warm("-c", code, cwd=tmp_path)
    assert done.stdout == "True 19\n", done.stderr


# `exec` stands for an installed package: its text is not read before the program begins.
LIBRARY_SETS = "import os; exec(\"os.environ['{}'] = '{}'\"); "


@pytest.mark.parametrize("first", ["keras", "tensorflow"])
def test_a_backend_that_a_library_chose_is_the_backend(warm, make_standby, tmp_path, first):
    """Without scipy, which that backend needs, both starts fail alike."""
    code = f"import {first}, sys; print('keras' in sys.modules); import keras; print(keras.backend.backend())"
    code = LIBRARY_SETS.format("KERAS_BACKEND", "numpy") + code
    environment = make_standby(tmp_path, tmp_path).environment
    plain = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert ("scipy" in plain.stderr) != plain.stdout.endswith("numpy\n"), plain.stderr
    done = warm("-c", code)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.stderr
    assert done.stderr.splitlines()[-1:] == plain.stderr.splitlines()[-1:]


def test_keras_imported_anew_trains(warm, tmp_path):
    code = f"""
import keras, numpy as np
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile('sgd', 'mse')
history = model.fit(np.ones((8, 4)), np.ones((8, 1)), epochs=2, verbose=0).history['loss']
model.save({str(tmp_path / "m.keras")!r})
print(history == sorted(history, reverse=True), keras.models.load_model({str(tmp_path / "m.keras")!r}).count_params())
print(keras.config.keras_home() if hasattr(keras.config, 'keras_home') else keras.src.backend.config._KERAS_DIR)
"""
    done = warm("-c", LIBRARY_SETS.format("KERAS_HOME", tmp_path) + code)
    assert done.stdout == f"True 5\n{tmp_path}\n", done.stderr


@pytest.mark.skipif(find_spec("tf_keras") is None, reason="tf_keras is not installed")
def test_the_older_keras_that_a_library_chose_is_used(warm, make_standby, tmp_path):
    code = (
        "import tensorflow as tf, sys; print('tf_keras.src.optimizers' in sys.modules, tf._tf_uses_legacy_keras, "
        "tf.__path__); print(tf.keras.__version__, tf.keras.layers.Dense.__module__, tf.losses.Loss.__module__)"
    )
    code = LIBRARY_SETS.format("TF_USE_LEGACY_KERAS", "1") + code
    environment = make_standby(tmp_path, tmp_path).environment
    plain = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert plain.stdout.startswith("True True"), plain.stderr
    assert warm("-c", code).stdout == plain.stdout


def test_another_variable_that_a_library_set_is_an_error_and_does_not_silently_fail_to_hold(warm):
    done = warm("-c", LIBRARY_SETS.format("TF_ENABLE_ONEDNN_OPTS", "0") + "import tensorflow")
    assert done.returncode == 1
    assert "the program changed variables that the standby has read already: TF_ENABLE_ONEDNN_OPTS" in done.stderr


@pytest.mark.parametrize("how", ["os.environ['KERAS_BACKEND'] = 'tensorflow'", "exec('{}')"])
def test_the_backend_that_is_in_use_may_be_set(warm, how):
    setting = how.format('os.environ.update(KERAS_BACKEND=chr(116) + chr(101) + "nsorflow")')
    done = warm(
        "-c", f"import os; {setting}; import keras; print(keras.backend.backend(), os.environ['KERAS_BACKEND'])"
    )
    assert done.stdout == "tensorflow tensorflow\n", done.stderr


LEVELS = ["'3'", "' 1x'"]


@pytest.mark.parametrize("level", LEVELS)
def test_the_log_level_is_what_it_is_without_a_standby(warm, make_standby, tmp_path, level):
    code = f"""
import os
os.environ['TF_CPP_MIN_LOG_LEVEL'] = {level}
import tensorflow as tf
import ctypes
library = ctypes.CDLL(os.path.join(os.path.dirname(tf.__file__), 'libtensorflow_framework.so.2'))
names = ('_ZN4absl12lts_%s11MinLogLevelEv' % release for release in
    ('20230802', '20240116', '20240722', '20250127', '20250512', '20250814'))
print([function() for name in names if (function := getattr(library, name, None))])
"""
    environment = make_standby(tmp_path, tmp_path).environment
    plain = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert plain.stdout.startswith("["), plain.stderr
    assert warm("-c", code).stdout == plain.stdout


def test_variables_that_an_import_sets_are_set_when_the_program_imports(warm, make_standby, tmp_path):
    code = (
        "import os, sys; before = dict(os.environ); import {}; import tensorflow, keras\n"
        "print(sorted(one for one in os.environ.items() if one not in before.items()), before.keys() - {{*os.environ}})"
    )
    environment = make_standby(tmp_path, tmp_path).environment
    for first in ("tensorflow", "keras"):
        words = ("-c", code.format(first))
        plain = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
        assert "TF2_BEHAVIOR" in plain.stdout
        assert (warm(*words).stdout, warm(*words).stderr) == (plain.stdout, "")
