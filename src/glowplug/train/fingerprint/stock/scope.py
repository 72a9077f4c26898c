"""Which stock modules a survey looks through, and which of their names it passes over."""

from __future__ import annotations

import functools

from glowplug.imports.put_off.pages import OFFERED

from .admission import STANDARD
from .trusted import root_of

_PACKAGES = frozenset({"keras", "tensorflow", "numpy"})
_COMPILED_HALVES = frozenset({"_operator", "_functools", "_collections", "_collections_abc"})
NOT_LOOKED_AT = frozenset(
    [
        "__doc__",
        "__file__",
        "__cached__",
        "__path__",
        "__loader__",
        "__spec__",
        "__builtins__",
        "__warningregistry__",
        "__annotations__",
        "__weakref__",
        "__dict__",
        "__abstractmethods__",
        "_abc_impl",
        "__module__",
        "__qualname__",
        "__slots__",
        "__parameters__",
        "__slotnames__",
        "__all__",
        "__orig_bases__",
        "__static_attributes__",
        "__firstlineno__",
        "__annotations_cache__",
        "__annotate_func__",
        OFFERED,
    ]
)
# What TensorFlow and Keras change themselves: counters, caches, and what is left of a loop over a set.
UNSETTLED = frozenset(
    [
        "keras.src.api_export.REGISTERED_NAMES_TO_OBJS",
        "keras.src.api_export.REGISTERED_OBJS_TO_NAMES",
        "keras.src.trainers.data_adapters.py_dataset_adapter._SEQUENCE_COUNTER",  # of what hands over data
        "keras.src.trainers.data_adapters.py_dataset_adapter._SHARED_SEQUENCES",
        "keras.src.trainers.data_adapters.py_dataset_adapter._WORKER_ID_QUEUE",
        "numpy.iinfo._min_vals",
        "numpy.iinfo._max_vals",
        "numpy._core.numerictypes.allTypes",
        "numpy.ma.core.info",  # left of a loop; it computes what it is asked for and keeps it
        "numpy.ma.core.scalar_dtype",  # left of a loop over what has been registered by then
        "numpy.ma.core.sctype",
        "keras.src.utils.module_utils.LazyModule",
        "keras.src.utils.module_utils.OrbaxLazyModule",
        "tensorflow._s",
        "tensorflow._plugin_dir",
        "tensorflow._site_packages_dirs",
        "tensorflow.core.config.flags.FLAGS",  # what they say is among a key's settings
        "tensorflow.python.autograph.pyct.inspect_utils._BUILTIN_FUNCTION_IDS",
        "tensorflow.python.distribute.distribute_lib._defaults",
        "tensorflow.python.eager.context._context",
        "tensorflow.python.eager.context._tensor_caches_map",
        "tensorflow.python.framework.device._cached_mergers",
        "tensorflow.python.framework.device_spec._STRING_TO_COMPONENTS_CACHE",
        "tensorflow.python.framework.op_def_registry._cache",
        "tensorflow.python.ops.script_ops._py_funcs",  # every generator adds to it; a step that calls one is not kept
        "tensorflow.python.ops.script_ops.tape_cache",
        "tensorflow.python.saved_model.revived_types._REVIVED_TYPE_REGISTRY",  # for loading; imports add to it
        "tensorflow.python.saved_model.revived_types._TYPE_IDENTIFIERS",
        "tensorflow.python.util.tf_export._NAME_TO_SYMBOL_MAPPING",
        "tensorflow.python.util.all_util._HIDDEN_ATTRIBUTES",
        "tensorflow.python.ops.weak_tensor_ops.tensor_oper",
        "tensorflow.python.ops.weak_tensor_ops.operator",
    ]
)
# Never used by a step of Keras: another interface to the same functions, protocol buffers, older and other products,
# and the classes for scikit-learn, whose methods it wraps. No code of a user's may use them either: `admission`.
_ELSEWHERE = (
    "keras.src.wrappers.",
    "tensorflow._api.v2.compat.",
    "tensorflow.compiler.xla.",
    "tensorflow.core.example.",
    "tensorflow.core.framework.",
    "tensorflow.core.profiler.",
    "tensorflow.core.protobuf.",
    "tensorflow.core.util.",
    "tensorflow.lite.",
    "tensorflow.python.debug.",
    "tensorflow.python.keras.",
    "tensorflow.python.ops.standard_ops",  # for these layers alone; which functions it has depends on when it is loaded
    "tensorflow.python.tpu.",
    "tensorflow.tools.",
    "numpy.f2py.",
    "numpy.testing.",
)
_FACADES = frozenset({"tensorflow", "tensorflow.experimental"})


@functools.lru_cache(maxsize=8192)
def is_looked_into(module: str) -> bool:
    """Whether a module's functions, classes and values count."""
    root = root_of(module)
    if root in _PACKAGES:
        return not module.startswith(_ELSEWHERE)
    return root in STANDARD or module in _COMPILED_HALVES


@functools.lru_cache(maxsize=1024)
def is_never_used(module: str) -> bool:
    """Whether no step of Keras has anything to do with what comes from a module, whenever that is loaded."""
    return module.startswith(_ELSEWHERE)


def is_facade(module: str) -> bool:
    """Whether a module has names for what stands elsewhere and may not be loaded yet: each counts by itself."""
    return module in _FACADES or module.startswith("tensorflow._api.")
