"""Runs a stored trace: its functions are added to the eager context and called by name with this model's
variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from glowplug.train.fingerprint.tables import is_constant, table_handle
from glowplug.train.fingerprint.variables import resource_of, variable_spec
from glowplug.train.verify.warned import can_warn_again, warn_again

from . import structure
from .entry import Entry


class DoesNotFitError(Exception):
    """A stored trace cannot be used for this call; it is traced as usual."""


def add_functions(entry: Entry) -> str:
    """Add the functions of an entry to the eager context and return the name of the one to call.

    Names follow from the content of the graph, so a name that is there already is the same function.
    """
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context

    current = context.context()
    current.ensure_initialized()
    name = str(entry.plan["name"])
    _check_operations(entry.plan["operations"], int(entry.plan["functions"]), name)
    if not current.has_function(name):
        for number in range(entry.plan["functions"]):
            raw = entry.blobs[f"function {number}"]
            pywrap_tfe.TFE_ContextAddFunctionDef(current._handle, raw, len(raw))
    return name


class RestoredFunction:
    """A stored trace, bound to variables. Called with the flat tensors of a call, it returns what the step
    returns.
    """

    def __init__(self, name: str, entry: Entry, variables: Sequence[Any], tables: Sequence[Any] = ()) -> None:
        from tensorflow.python.eager import context

        plan = entry.plan
        self._name = name.encode()
        self._results = int(plan["results"])
        self._captures = [_bind(capture, variables, tables, entry.blobs) for capture in plan["captures"]]
        self._structure = structure.specs(plan["outputs"])
        self._context = context.context()
        if not self._context.has_function(self._name):
            raise DoesNotFitError(f"TensorFlow does not know its function {name}")
        self._attributes = call_attributes()
        self._traced_as = str(plan["traced_as"])
        self._warned = plan.get("warned")
        if not can_warn_again(self._warned):
            raise DoesNotFitError("what it warned of cannot be said again")
        if structure.count(self._structure) != self._results:
            raise DoesNotFitError("it has another number of results")

    def __call__(self, tensors: list[Any]) -> Any:
        """Run the step. It runs once: an error in it is the program's, raised as TensorFlow raises it."""
        from tensorflow.python.eager import execute
        from tensorflow.python.framework import errors

        if self._warned:
            rows, self._warned = self._warned, None
            warn_again(rows)
        try:
            outputs = execute.execute(
                self._name,
                num_outputs=self._results,
                inputs=tensors + self._captures,
                attrs=self._attributes,
                ctx=self._context,
            )
        except errors.OpError as error:
            error._message = self._as_traced(error.message)
            raise
        return structure.pack(self._structure, iter(outputs))

    def _as_traced(self, message: str) -> str:
        """Return an error's message with the name of the function that was traced, in the form TensorFlow gives it."""
        from tensorflow.python.framework import error_interpolation

        text, functions, nodes = error_interpolation.parse_message(message)
        text = str(text).replace(self._name.decode(), self._traced_as)
        if not functions:
            return text
        lines = ["Graph execution error:", ""]
        for node in nodes:
            lines.append(f"Detected at node {node.name} defined at (most recent call last):")
            lines.append("<stack traces unavailable>")
        return "\n".join([*lines, text.strip()])


def _check_operations(names: Sequence[str], functions: int, name: str) -> None:
    """Refuse a graph with operations that this process does not have: nothing of it must have run by then."""
    from tensorflow.python.framework import op_def_registry

    own = {name, *(f"{name}_{index}" for index in range(functions))}
    missing = [each for each in names if each not in own and op_def_registry.get(each) is None]
    if missing:
        raise DoesNotFitError(f"its graph needs the operation {missing[0]}, which is not loaded")


def capture_plan(
    concrete: Any, variables: Sequence[Any], tables: Sequence[Any] = ()
) -> tuple[list[Any], dict[str, bytes]]:
    """Say where each capture of a traced function comes from: a variable or a table by number, or a constant
    by value.
    """
    from glowplug.train.fingerprint.errors import NoKeyError

    if concrete.graph.deferred_external_captures:
        raise NoKeyError("it captures values at call time")
    numbers = {id(resource_of(variable).handle): number for number, variable in enumerate(variables)}
    table_numbers = {id(table_handle(table)): number for number, table in enumerate(tables)}
    seed = _global_seed_variable()
    plan: list[Any] = []
    constants: dict[str, bytes] = {}
    for external, _ in concrete.graph.captures:
        if id(external) in numbers:
            number = numbers[id(external)]
            plan.append(["variable", number, variable_spec(variables[number])])
        elif id(external) in table_numbers:
            number = table_numbers[id(external)]
            if not is_constant(tables[number]):
                table = tables[number]
                types = f"{table.key_dtype.name} -> {table.value_dtype.name}"
                raise NoKeyError(f"it looks up in a table that can change ({table.name}, {types})")
            plan.append(["table", number])
        elif seed is not None and external is resource_of(seed).handle:
            plan.append(["seed"])
        elif external.dtype.name in ("resource", "variant") or not hasattr(external, "numpy"):
            raise NoKeyError(f"it captures {_describe(external)}")
        else:
            constants[f"constant {len(constants)}"] = _encode_constant(external)
            plan.append(["constant", f"constant {len(constants) - 1}"])
    return plan, constants


def _bind(capture: list[Any], variables: Sequence[Any], tables: Sequence[Any], blobs: Mapping[str, bytes]) -> Any:
    if capture[0] == "constant":
        return _decode_constant(blobs[capture[1]])
    if capture[0] == "table":
        if capture[1] >= len(tables):
            raise DoesNotFitError(f"there is no table {capture[1]}")
        return table_handle(tables[capture[1]])
    if capture[0] == "seed":
        from keras.src.random.seed_generator import global_seed_generator

        return resource_of(global_seed_generator().state).handle
    _, number, spec = capture
    if number >= len(variables) or variable_spec(variables[number]) != spec:
        raise DoesNotFitError(f"variable {number} is not {spec}")
    return resource_of(variables[number]).handle


def call_attributes() -> tuple[Any, ...]:
    """Return how the runtime is to call an optimised graph: as the program configured it, without Grappler."""
    from tensorflow.core.protobuf import config_pb2
    from tensorflow.python.eager import context

    options = context.context().function_call_options
    config = config_pb2.ConfigProto.FromString(options.config_proto_serialized)
    config.graph_options.rewrite_options.disable_meta_optimizer = True  # the graph is Grappler's result already
    return ("executor_type", options.executor_type or "", "config_proto", config.SerializeToString())


def _encode_constant(tensor: Any) -> bytes:
    from tensorflow.python.framework import tensor_util

    proto = tensor_util.make_tensor_proto(tensor.numpy(), dtype=tensor.dtype, shape=tensor.shape)
    return bytes(proto.SerializeToString())


def _decode_constant(raw: bytes) -> Any:
    import tensorflow as tf
    from tensorflow.core.framework import tensor_pb2
    from tensorflow.python.framework import dtypes, tensor_util

    proto = tensor_pb2.TensorProto.FromString(raw)
    return tf.constant(tensor_util.MakeNdarray(proto), dtype=dtypes.as_dtype(proto.dtype))


def _global_seed_variable() -> Any:
    from keras.src.backend.common import global_state

    found = global_state.get_global_attribute("global_seed_generator")
    return None if found is None else found.state


def _describe(external: Any) -> str:
    from tensorflow.python.ops import handle_data_util

    del handle_data_util
    kind = external.dtype.name
    if kind == "resource":
        return "a resource that is no variable in its reach (made while it was traced, a table, a writer)"
    return f"a {kind} that lives in this process alone"
