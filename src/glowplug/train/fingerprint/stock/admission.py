"""The one place that says which stock code a step may use: an allow-list, and everything else is refused by name.

Code of the user's own is hashed by value and needs no permission. Stock code is known by its name, so it may be used
only if the name says all there is to say: its result is a function of its arguments and of what a key holds. The clock,
random numbers, files, the environment, other threads and compiled code of other packages are on no list.

The same lists judge what a walk finds in code (`Uses`) and what a witness saw running.
"""

from __future__ import annotations

import builtins
from functools import lru_cache
from typing import Any

from .admitted_builtins import BUILTINS, TYPES

# Modules of the standard library whose functions are functions of their arguments.
STANDARD = frozenset(
    [
        "__future__",
        "abc",
        "ast",
        "array",
        "base64",
        "binascii",
        "bisect",
        "builtins",
        "cmath",
        "collections",
        "colorsys",
        "contextlib",
        "copy",
        "dataclasses",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "hashlib",
        "heapq",
        "itertools",
        "json",
        "keyword",
        "math",
        "numbers",
        "operator",
        "re",
        "statistics",
        "string",
        "struct",
        "textwrap",
        "types",
        "typing",
        "unicodedata",
        "_abc",
        "_collections_abc",
        "_weakrefset",
        "opcode",
        "sre_compile",
        "sre_parse",
    ]
)

_TELLING = ("debug", "info", "warning", "warn", "error", "critical", "exception", "fatal", "log")

# The longest prefix that fits decides; what no prefix fits is not admitted.
_ALLOWED: dict[str, bool] = {
    **dict.fromkeys(STANDARD, True),
    **dict.fromkeys(["typing_extensions", "ml_dtypes"], True),
    "typing.get_type_hints": False,  # annotations are in no key
    # what was registered anywhere so far
    **dict.fromkeys(
        ["abc.get_cache_token", "abc._get_dump", "typing.get_overloads", "typing_extensions.get_overloads"], False
    ),
    "reprlib.recursive_repr": True,  # the others of its module, and `pprint`, go by addresses
    # What only tells: nothing that is computed depends on it.
    **{f"logging.{name}": True for name in _TELLING},
    **{f"logging.Logger.{name}": True for name in _TELLING},
    **{f"absl.logging.{name}": True for name in _TELLING},
    **{f"tensorflow.python.platform.tf_logging.{name}": True for name in _TELLING},
    "warnings.warn": True,
    **dict.fromkeys(
        [
            "inspect.ismethod",
            "inspect.isfunction",
            "inspect.isclass",
            "inspect.isbuiltin",
            "inspect.signature",
            "inspect.Signature",
            "inspect.Parameter",
            "inspect.isgenerator",
        ],
        True,
    ),
    "numpy": True,
    **dict.fromkeys(
        [
            "numpy.random",
            "numpy.lib.npyio",
            "numpy.lib._npyio_impl",
            "numpy.lib._datasource",
            "numpy.lib.format",
            "numpy.ctypeslib",
            "numpy.f2py",
            "numpy.testing",
            "numpy.distutils",
            "numpy.load",
            "numpy.fromfile",
            "numpy.memmap",
            "numpy.core.memmap",
            "numpy._core.memmap",
            "numpy.core.multiarray.fromfile",
            "numpy._core.multiarray.fromfile",
            "numpy.lib._utils_impl",
            "numpy.ndarray.tofile",
            "numpy.ndarray.dump",
            "numpy._core._methods._dump",
            # addresses
            "numpy._core._internal._ctypes",
            "numpy.core._internal._ctypes",
            "numpy.lib._array_utils_impl.byte_bounds",
            "numpy.lib.utils.byte_bounds",
        ],
        False,
    ),
    # Keras: what computes, not what reads files or keeps counters.
    **{
        f"keras.src.{name}": True
        for name in [
            "activations",
            "applications",
            "backend",
            "constraints",
            "distillation",
            "dtype_policies",
            "initializers",
            "layers",
            "legacy",
            "losses",
            "metrics",
            "models",
            "ops",
            "optimizers",
            "quantizers",
            "random",
            "regularizers",
            "saving.keras_saveable",
            "saving.object_registration",
            "saving.serialization_lib",
            "trainers",
            "tree",
            "api_export",
            "utils.argument_validation",
            "utils.backend_utils",
            "utils.dtype_utils",
            "utils.io_utils",
            "utils.numerical_utils",
            "utils.python_utils",
            "utils.sequence_utils",
            "utils.tf_utils",
            "utils.traceback_utils",
            "utils.tracking",
            "utils.sequence",
        ]
    },
    **dict.fromkeys(
        [
            "keras.src.backend.common.global_state",
            "keras.src.backend.common.remat",
            "keras.src.applications.imagenet_utils.decode_predictions",
            "keras.src.legacy.preprocessing",
            "keras.src.legacy.saving",
            "keras.src.utils.io_utils.ask_to_proceed_with_overwrite",
            "keras.src.backend.common.tensor_attributes",
            "keras.src.backend.common.name_scope.current_path",
            "keras.src.models.model.Model.export",
            "keras.src.models.model.Model.load_weights",
            "keras.src.models.model.Model.save",
            "keras.src.models.model.Model.save_weights",
            "keras.src.random.seed_generator.draw_seed",
            "keras.src.random.seed_generator.global_seed_generator",
            "keras.src.random.seed_generator.make_default_seed",
        ],
        False,
    ),
    # TensorFlow: operations and the machinery around them.
    **{
        f"tensorflow.python.{name}": True
        for name in [
            "autograph",
            "compiler",
            "data",
            "distribute.distribute_lib",
            "distribute.reduce_util",
            "eager",
            "framework",
            "module",
            "ops",
            "trackable",
            "training",
            "types",
            "util",
            "feature_column",
        ]
    },
    **{
        f"tensorflow.python.{name}": False
        for name in [
            "eager.context",
            "eager.profiler",
            "eager.remote",
            "framework.config",
            "framework.func_graph.FuncGraph",
            "framework.graph_io",
            "framework.load_library",
            "framework.meta_graph",
            "framework.ops",  # graphs have names, seeds and collections; what is admitted of it follows
            "framework.random_seed",
            "framework.test_util",
            "ops.script_ops",
            "ops.summary_ops_v2",
            "ops.variable_scope",
            "ops.numpy_ops.np_random",
            "training.checkpoint_utils",
            "training.py_checkpoint_reader",
            "training.saver",
            "util.all_util",
            "util.tf_inspect",
            "util.tf_stack",
            # settings of this thread that are in no key
            "util.traceback_utils.disable_traceback_filtering",
            "util.traceback_utils.enable_traceback_filtering",
            "util.traceback_utils.is_traceback_filtering_enabled",
            "training.training_util",
        ]
    },
    **{
        f"tensorflow.python.{name}": True
        for name in [
            "eager.context.executing_eagerly",
            "eager.context.executing_eagerly_v1",
            "framework.func_graph.FuncGraph.control_dependencies",
            "framework.ops.EagerTensor",
            "framework.ops._EagerTensorBase",
            "framework.ops.Graph._ControlDependenciesController",
            "framework.ops.Graph.control_dependencies",
            "framework.ops.Graph.device",
            "framework.ops.Graph.gradient_override_map",
            "framework.ops.Graph.name_scope",
            "framework.ops.NullContextmanager",
            "framework.ops.Operation",
            "framework.ops.RegisterGradient",
            "framework.ops.colocate_with",
            "framework.ops.control_dependencies",
            "framework.ops.convert_n_to_tensor",
            "framework.ops.convert_to_tensor",
            "framework.ops.convert_to_tensor_or_composite",
            "framework.ops.device",
            "framework.ops.device_v2",
            "framework.ops.executing_eagerly_outside_functions",
            "framework.ops.inside_function",
            "framework.ops.is_symbolic_tensor",
            "framework.ops.name_scope",
            "framework.ops.name_scope_v1",
            "framework.ops.name_scope_v2",
            "framework.ops.no_gradient",
        ]
    },
    # Operations of XLA's that only compute.
    **{
        f"tensorflow.compiler.tf2xla.{name}": True
        for operation in ["dynamic_slice", "dynamic_update_slice", "einsum", "gather", "pad", "scatter"]
        for name in [f"python.xla.{operation}", f"ops.gen_xla_ops.xla_{operation}"]
    },
    "tensorflow.python.lib.core": True,
    "tensorflow.python.trackable.autotrackable": True,
    "optree": True,
    "optree.dict_insertion_ordered": False,
    "wrapt": True,
    "glowplug.train": True,
}

_CLASS_METHODS = frozenset({"__new__", "fromkeys", "maketrans", "from_bytes", "fromhex", "__init_subclass__"})
_NOT_OF_ARRAYS = frozenset({"buffer_info", "fromfile", "tofile"})
_NOT_OF_NUMPY = frozenset(
    {"tofile", "dump", "dumps", "tobytes", "tostring"}
)  # files; addresses, of an array of objects
# Kinds of stock objects whose whole state lies in `__dict__` and slots, besides those of Keras and TensorFlow.
_INSTANCES = ("keras", "tensorflow", "tf_keras", "glowplug", "types", "argparse", "string", "collections", "typing")
_INSTANCES_BY_NAME = frozenset(
    [
        "dataclasses.Field",
        "dataclasses._DataclassParams",
        "dataclasses._FIELD_BASE",
        "dataclasses._MISSING_TYPE",
        "dataclasses._KW_ONLY_TYPE",
        "dataclasses._HAS_DEFAULT_FACTORY_CLASS",
        "enum.property",
        "enum.auto",
        "enum.member",
        "enum.nonmember",
        "inspect.Signature",
        "inspect.Parameter",
        "functools.partialmethod",
        "functools.singledispatchmethod",
        "abc.ABC",
    ]
)


@lru_cache(maxsize=16384)
def admits(module: str, name: str) -> bool:
    """Whether a stock function or class may be used by a step that is cached."""
    if module in ("builtins", "exceptions"):
        return name.partition(".")[0] in BUILTINS or _is_exception(name)
    place = f"{module}.{name}" if name else module
    while place:
        known = _ALLOWED.get(place)
        if known is None and place.startswith("_"):
            known = _ALLOWED.get(place.lstrip("_"))  # `_operator`, `_functools`: the compiled half of a module
        if known is not None:
            return known
        place = place.rpartition(".")[0]
    return False


def admits_instance(kind: Any) -> bool:
    """Whether the whole state of a stock class' instances is visible and says all there is to say."""
    module = str(kind.__module__)
    root = module.partition(".")[0]
    if f"{module}.{kind.__qualname__}" in _INSTANCES_BY_NAME:
        return True
    return root in _INSTANCES or (module == "builtins" and kind is object)


@lru_cache(maxsize=16384)
def admits_described(text: str) -> bool:
    """Whether a compiled function may be called by a step, judged by how a profiler describes it.

    The forms are `<built-in method math.sqrt>`, `<method 'append' of 'list' objects>` and, for methods of a class,
    `<built-in method fromkeys>`.
    """
    words = text.strip("<>").split(" ")
    if "of" in words and "'" in text:
        name, owner = text.split("'")[1], text.split("'")[3]
        if owner.startswith("numpy."):
            return name not in _NOT_OF_NUMPY and not owner.startswith("numpy.random")
        if owner == "array.array":
            return name not in _NOT_OF_ARRAYS
        return owner in TYPES or _is_exception(owner) or owner.startswith(("tensorflow.", "optree", "google."))
    place = words[-1]
    module, _, name = place.rpartition(".")
    if not module:
        return name in _CLASS_METHODS
    return module.startswith(("tensorflow.", "optree")) or admits(module, name)


@lru_cache(maxsize=1024)
def _is_exception(name: str) -> bool:
    value = vars(builtins).get(name.partition(".")[0])
    return isinstance(value, type) and issubclass(value, BaseException)
