"""What of TensorFlow is put off, and what has to be done so that nobody can tell.

`PAGES` are pages of the API that few programs open. `SOURCES` are modules of which pages show a few names and which
bring in a lot more (`tf.nn` shows three wrappers of the old Keras, whose import loads all of it). A module is listed
after its parents where those are put off with it. `INSTEAD` names what must be imported at the moment when a page is
put off, since it changes what later pages show. `KEPT` are packages that stock TensorFlow has loaded once it is
imported: were one of them loaded later, Python would bind it in `tensorflow`, over or beside the API. `AWAITED` are
keys that a module which is put off would have registered, and `VARIABLES` those of the environment that it would have
set, by release; `DEFAULTS` are set only where the program has chosen nothing.
"""

from __future__ import annotations

_API = "tensorflow._api.v2."

PAGES = frozenset(
    _API + page
    for page in (
        "__internal__.distribute",
        "__internal__.feature_column",
        "__internal__.test",
        "compat.v1",
        "compat.v2",
        "debugging.experimental",
        "distribute",
        "experimental.dtensor",
        "experimental.numpy",
        "feature_column",
        "lite",
        "mlir",
        "profiler",
        "quantization",
        "raw_ops",
        "summary.experimental",
        "test",
        "tpu",
        "xla",
    )
)

SOURCES = frozenset(
    (
        "tensorflow.python.debug.lib.check_numerics_callback",
        "tensorflow.python.eager.remote",
        "tensorflow.python.keras",
        "tensorflow.python.keras.layers",
        "tensorflow.python.keras.layers.rnn_cell_wrapper_v2",
        "tensorflow.python.training.training",
    )
)

# Modules of other packages that Keras uses in `RemoteMonitor`, in `.h5` files, for a memory figure and in `summary()`;
# and those that are loaded at once, since they change something: `rich.style` draws from Python's random numbers.
DEFERRED: dict[str, tuple[str, ...]] = {
    "h5py": (),
    "psutil": (),
    "requests": (),
    "rich.console": ("rich.style",),
    "rich.markup": ("rich.style",),
    "rich.table": ("rich.style",),
}

INSTEAD = {
    # Wraps functions of math_ops and array_ops in place: pages that come after show the wrapped ones.
    _API + "compat.v1": ("tensorflow.python.ops.numpy_ops.np_config",),
}

# Modules that know nothing of TensorFlow, and that TensorFlow or Keras imports.
AHEAD = (
    "numpy",
    "absl.logging",
    "gast",
    "google.protobuf.text_format",
    "ml_dtypes",
    "opt_einsum",
    "optree",
    "packaging.version",
    "six",
    "typing_extensions",
    "wrapt",
)

KEPT = ("tensorflow.distribute", "tensorflow.lite")

AWAITED = {
    ("tensorflow.python.framework.ops", "gradient_registry._registry"): {
        "AudioMicrofrontend": "tensorflow.lite.experimental.microfrontend.python.ops.audio_microfrontend_op",
        "DebugIdentityV2": "tensorflow.python.debug.lib.dumping_callback",
    },
    ("tensorflow.python.saved_model.revived_types", "_REVIVED_TYPE_REGISTRY"): {
        "tf_deprecated_optimizer": "tensorflow.python.keras.optimizer_v2.optimizer_v2",
    },
    ("tensorflow.python.saved_model.registration.registration", "_saver_registry._registered_map"): {
        "tf.TPUEmbeddingCallback": "tensorflow.python.tpu.tpu_embedding_v2",
    },
}

VARIABLES = {
    # The old Keras sets it before it imports h5py, so that no file makes HDF5 load a library: a matter of security.
    "2.21": {"HDF5_PLUGIN_PATH": "disable"},
}
DEFAULTS = {
    "2.22": {"HDF5_PLUGIN_PATH": "/dev/null"},
}
