"""The part of a key that is the same for every function of a process: versions, processor, settings,
environment.
"""

from __future__ import annotations

import os
import platform
import sys
from functools import lru_cache
from pathlib import Path

from glowplug.core.disclosure import disclosed_variables
from glowplug.core.version import VERSION
from glowplug.train.fingerprint.stock.files import stock_stamps

PREFIXES = ("TF_", "TF2_", "XLA_", "KERAS_", "AUTOGRAPH_", "NPY_")

# Variables with such a prefix that cannot change a graph. All others count, whoever reads them.
_HARMLESS = frozenset(
    {
        "TF2_BEHAVIOR",  # set by TensorFlow's import, whatever it was
        # what is logged or dumped
        "TF_CPP_MIN_LOG_LEVEL",
        "TF_CPP_MAX_VLOG_LEVEL",
        "TF_CPP_MIN_VLOG_LEVEL",
        "TF_CPP_VMODULE",
        "TF_CPP_VLOG_FILENAME",
        "TF_CPP_LOG_THREAD_ID",
        "TF_DEBUG_LOG_VERBOSITY",
        "TF_DUMP_GRAPH_PREFIX",
        "TF_DUMP_GRAPH_NAME_FILTER",
        "TF_DUMP_GRAPH_FMT",
        "TF_DUMP_GRAPH_GROUPS",
        "TF_PROFILER_DISABLED",
        "AUTOGRAPH_VERBOSITY",
        # how fast, not what
        "TF_NUM_INTEROP_THREADS",
        "TF_NUM_INTRAOP_THREADS",
        "TF_NUM_BATCH_THREADS",
        "TF_OVERRIDE_GLOBAL_THREADPOOL",
        # what they decide is in the key: the backend, and the settings that the file in this folder gives
        "KERAS_BACKEND",
        "KERAS_HOME",
        # read by `fit`, outside its steps
        "KERAS_MAX_EPOCHS",
        "KERAS_MAX_STEPS_PER_EPOCH",
        "KERAS_TORCH_DEVICE",
        # Terraform's
        "TF_LOG",
        "TF_LOG_CORE",
        "TF_LOG_PROVIDER",
        "TF_LOG_PATH",
        "TF_INPUT",
        "TF_WORKSPACE",
        "TF_IN_AUTOMATION",
        "TF_DATA_DIR",
        "TF_PLUGIN_CACHE_DIR",
        "TF_CLI_CONFIG_FILE",
        "TF_IGNORE",
    }
)
_TERRAFORM = ("TF_VAR_", "TF_TOKEN_", "TF_CLI_ARGS", "TF_REGISTRY_")
FORMAT = 5  # of the stored graphs and of the walk; another number makes all older entries misses


def environment_values() -> dict[str, dict[str, str]]:
    """Return the components, each as readable values by name."""
    import keras
    import numpy as np
    import tensorflow as tf

    build = ", ".join(f"{name}={value}" for name, value in sorted(tf.sysconfig.get_build_info().items()))
    return {
        "tensorflow": {"": f"{tf.__version__} {tf.version.GIT_VERSION} {build}"},
        "numpy": {"": np.__version__},
        "keras": {"": f"{keras.__version__} {keras.backend.backend()}", **_legacy_keras()},
        "glowplug": {"": f"{VERSION} format {FORMAT}"},
        "files": stock_stamps(),
        "python": {"": f"{sys.implementation.name} {platform.python_version()}"},
        "cpu": {"": cpu_features()},
        "environment": environment_variables(),
        "settings": {**_keras_settings(), **_tensorflow_settings()},
    }


def _legacy_keras() -> dict[str, str]:
    legacy = sys.modules.get("tf_keras")
    return {} if legacy is None else {"tf_keras": str(getattr(legacy, "__version__", "loaded"))}


def environment_variables() -> dict[str, str]:
    """Return the variables that may change a graph, without what Glowplug itself added."""
    from glowplug.train.xla import without_own_flags

    found = {name: value for name, value in os.environ.items() if _counts(name)}
    if "TF_XLA_FLAGS" in found:
        found["TF_XLA_FLAGS"] = without_own_flags(found["TF_XLA_FLAGS"])
    return disclosed_variables({name: value for name, value in found.items() if value})


def _counts(name: str) -> bool:
    return name.startswith(PREFIXES) and name not in _HARMLESS and not name.startswith(_TERRAFORM)


@lru_cache(maxsize=1)
def cpu_features() -> str:
    """Return the processor's instruction sets: kernels and graph rewrites are chosen by them."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("flags", "Features"):
                return f"{platform.machine()} {' '.join(sorted(value.split()))}"
    except OSError:
        pass
    return f"{platform.machine()} {platform.processor()}"


def _keras_settings() -> dict[str, str]:
    import keras
    from keras.src.backend.common import global_state

    config = keras.config
    found = {
        "floatx": config.floatx(),
        "epsilon": config.epsilon(),
        "image_data_format": config.image_data_format(),
        "dtype_policy": config.dtype_policy().name,
        "flash_attention": config.is_flash_attention_enabled(),
        "distribution": global_state.get_global_attribute("distribution"),
        "remat_scope": global_state.get_global_attribute("remat_scope_stack"),
    }
    return {f"keras {name}": str(value) for name, value in found.items()}


def _tensorflow_settings() -> dict[str, str]:
    import tensorflow as tf
    from tensorflow.core.protobuf import config_pb2
    from tensorflow.python.eager import context
    from tensorflow.python.framework import config as framework_config
    from tensorflow.python.framework import ops
    from tensorflow.python.ops.numpy_ops import np_dtypes

    current = context.context()
    proto = config_pb2.ConfigProto()
    proto.CopyFrom(current.config)
    for name in ("intra_op_parallelism_threads", "inter_op_parallelism_threads"):
        proto.ClearField(name)  # they change how fast, not what
    found = {
        "config": str(proto),
        "determinism": framework_config.is_op_determinism_enabled(),
        "tensor_float_32": tf.config.experimental.tensor_float_32_execution_enabled(),
        "soft_placement": tf.config.get_soft_device_placement(),
        "numpy_behavior": (
            ops.get_dtype_conversion_mode(),
            ops._numpy_style_slicing,
            np_dtypes.is_prefer_float32(),
        ),
        "flags": _tensorflow_flags(),
        "device": current.device_name or "",
        "devices": ", ".join(sorted(device.name for device in tf.config.list_logical_devices())),
    }
    return {f"tensorflow {name}": str(value) for name, value in found.items()}


def _tensorflow_flags() -> str:
    """Return the names of TensorFlow's own flags that are set."""
    from tensorflow.python import flags_pybind

    flags = flags_pybind.Flags()  # all of them are one in compiled code
    return " ".join(name for name in sorted(dir(flags)) if not name.startswith("_") and getattr(flags, name).value())
