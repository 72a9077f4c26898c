"""Which releases of TensorFlow are known: their versions, and the private names that restoring a trace stands on.

Everything that `train` uses and TensorFlow does not promise is named here. With a release that is not known, or that
lacks one of the names, all functions stay stock.
"""

from __future__ import annotations

from importlib import import_module

KNOWN_TENSORFLOW = frozenset({"2.16", "2.17", "2.18", "2.19", "2.20", "2.21"})

_PRIVATE_NAMES = {
    "tensorflow.core.function.polymorphism.type_dispatch": (
        "TypeDispatchTable.dispatch",
        "TypeDispatchTable.add_target",
        "TypeDispatchTable.try_generalizing_function_type",
    ),
    "tensorflow.core.function.polymorphism.function_type": (
        "FunctionType.bind",
        "FunctionType.unpack_inputs",
        "FunctionType.parameters",
    ),
    "tensorflow.core.function.trace_type.default_types": ("Tuple", "List", "Dict", "Literal", "Weakref"),
    "tensorflow.python.data.ops.optional_ops": ("Optional", "OptionalSpec"),
    "tensorflow.python.eager.context": (
        "context",
        "Context.function_call_options",
        "Context.enable_graph_collection",
        "Context.disable_graph_collection",
        "Context.export_run_metadata",
        "Context.has_function",
        "Context.op_callbacks",
    ),
    "tensorflow.python.eager.execute": ("execute",),
    "tensorflow.python.eager.record": ("could_possibly_record",),
    "tensorflow.python.eager.polymorphic_function.eager_function_run": ("RUN_FUNCTIONS_EAGERLY",),
    "tensorflow.python.eager.polymorphic_function.function_type_utils": (
        "canonicalize_function_inputs",
        "make_canonicalized_monomorphic_type",
    ),
    "tensorflow.python.framework.error_interpolation": ("parse_message",),
    "tensorflow.python.framework.op_def_registry": ("get",),
    "tensorflow.python.framework.type_spec": ("TypeSpec", "type_spec_from_value"),
    "tensorflow.python.ops.resource_variable_ops": ("BaseResourceVariable", "UninitializedVariable"),
    "tensorflow.python.pywrap_tfe": ("TFE_ContextAddFunctionDef",),
    "tensorflow.python.saved_model.nested_structure_coder": ("encode_structure", "decode_proto"),
}


def unknown_tensorflow() -> str:
    """Return what is not known about the installed TensorFlow, or an empty text."""
    import tensorflow as tf

    if ".".join(tf.__version__.split(".")[:2]) not in KNOWN_TENSORFLOW:
        return f"TensorFlow {tf.__version__} is not known to Glowplug"
    missing = [f"{module}.{name}" for module, names in _PRIVATE_NAMES.items() for name in names if _lacks(module, name)]
    return f"TensorFlow {tf.__version__} has no {missing[0]}" if missing else ""


def _lacks(module: str, name: str) -> bool:
    try:
        found = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return True
    return False
