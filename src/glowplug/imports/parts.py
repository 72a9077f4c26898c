"""What of TensorFlow is put off, and why that is safe: nothing here registers anything that other parts look up.

`PAGES` are pages of the API that few programs open. `SOURCES` are modules of which pages show a few names and which
bring in a lot more (`tf.nn` shows three wrappers of the old Keras, whose import loads all of it). A module is listed
after its parents where those are put off with it. `KEPT` are packages that stock TensorFlow has loaded once it is
imported: were one of them loaded later, Python would bind it in `tensorflow`, over or beside the API.
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

KEPT: tuple[str, ...] = ()
