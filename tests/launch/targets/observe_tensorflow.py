"""Writes what a program can observe after it has imported TensorFlow and Keras, as JSON, to the file `OBSERVE` names."""

import json
import os
import random
import sys

random.seed(11)
environment = dict(os.environ)
import atexit
import gc
import inspect
import logging
import signal
import threading
import traceback
import warnings

import keras
import numpy
import tensorflow as tf


def fails():
    try:
        tf.constant([1.0]) + tf.constant([1.0, 2.0, 3.0], shape=(3, 1, 1)) @ tf.constant(1.0)
    except Exception as error:
        return type(error).__name__, [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    return None


def observed():
    rows = {
        "versions": (tf.__version__, keras.__version__, numpy.__version__),
        "random after the import": random.random(),
        "names of tensorflow": dir(tf),
        "names of keras": dir(keras),
        "names of tf.keras": dir(tf.keras),
        "backend": keras.backend.backend(),
        "float": keras.config.floatx(),
        "eager": tf.executing_eagerly(),
        "devices": [one.name for one in tf.config.list_physical_devices()],
        "threads between ops": tf.config.threading.get_inter_op_parallelism_threads(),
        "threads within ops": tf.config.threading.get_intra_op_parallelism_threads(),
        "soft placement": tf.config.get_soft_device_placement(),
        "jit": tf.config.optimizer.get_jit(),
        "optimizer options": sorted(tf.config.optimizer.get_experimental_options()),
        "path": sys.path,
        "environment it sets": sorted(one for one in os.environ.items() if one not in environment.items()),
        "environment it removes": sorted(environment.keys() - os.environ.keys()),
        "python signals": {str(one): str(signal.getsignal(one)) for one in signal.valid_signals()},
        "hooks": [str(one) for one in (sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__)],
        "logger levels": (logging.getLogger("tensorflow").level, logging.getLogger("absl").level, logging.root.level),
        "root handlers": [type(one).__name__ for one in logging.root.handlers],
        "tensorflow handlers": [type(one).__name__ for one in logging.getLogger("tensorflow").handlers],
        "python threads": [one.name for one in threading.enumerate()],
        "collection is on": (gc.isenabled(), gc.get_threshold(), gc.get_debug()),
        "frozen objects": gc.get_freeze_count() > 0,
        "loggers": sorted(name for name in logging.root.manager.loggerDict if not name.startswith("glowplug")),
        "filters": sorted(f"{one[0]} {one[2].__name__}" for one in warnings.filters),
        "exit handlers": atexit._ncallbacks() > 0,
        "finders": [type(one).__name__ for one in sys.meta_path if not type(one).__module__.startswith("glowplug")],
        "modules in all": len(sys.modules),
        "names in the dictionary of tensorflow": len(vars(tf)),
        "a module is its file": inspect.getsourcefile(tf),
        "a loader": type(tf.__loader__).__name__,
        "a spec": (tf.__spec__.name, tf.__spec__.origin, tf.__spec__.cached, tf.__spec__.has_location),
        "a signature": str(inspect.signature(tf.nn.conv2d)),
        "a document": tf.matmul.__doc__,
        "a source": len(inspect.getsource(tf.keras.layers.Dense)),
        "an error": fails(),
        "random of numpy": (numpy.random.seed(3), float(numpy.random.random()))[1],
        "a seeded tensor": (tf.random.set_seed(5), tf.random.uniform((2,)).numpy().tolist())[1],
        "seeded weights": (
            keras.utils.set_random_seed(9),
            keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]).get_weights()[0].tolist(),
        )[1],
        "an answer": keras.layers.Dense(2, kernel_initializer="ones")(numpy.ones((1, 3), "float32")).numpy().tolist(),
        "a gradient": gradient(),
        "stack": len(inspect.stack()),
        "warnings seen": sorted(globals().get("__warningregistry__", {})),
        "determinism": tf.config.experimental.is_op_determinism_enabled()
        if hasattr(tf.config.experimental, "is_op_determinism_enabled")
        else None,
        "numpy errors": numpy.geterr(),
        "numpy printing": sorted(map(str, numpy.get_printoptions().items())),
        "descriptors": len([one for one in os.listdir("/proc/self/fd") if int(one) < 100]),
    }
    return rows


def gradient():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    return float(tape.gradient(y, x))


if __name__ == "__main__":
    document = json.loads(json.dumps(observed(), default=repr))
    with open(os.environ["OBSERVE"], "w") as file:
        json.dump(document, file)
