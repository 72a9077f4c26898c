"""Variables of TensorFlow: their making, and who overwrites them. Runs in the target."""

from __future__ import annotations

from . import user_lines
from .instruments import Instruments
from .recorder import ASSIGNED, now_ns

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any

    from .tracker import Attrs

# Assignments inside these are training or the making of a variable, not loading.
NOT_A_LOAD = frozenset({"variable", "step", "trace", "optimizer_build"})


class VariableInstruments:
    """Creation and assignment of `tf.Variable`."""

    def __init__(self, instruments: Instruments) -> None:
        self.instruments = instruments
        self.tracker = instruments.tracker
        self.recorder = instruments.recorder

    def install(self, module: Any) -> None:
        """Instrument `tensorflow.python.ops.resource_variable_ops`."""
        patch = self.instruments.patch("TensorFlow")
        timed = self.tracker.timed("initializers", "variable", "variable", leave=self._describe, when=_outermost)
        patch.replace(module.ResourceVariable, "_init_from_args", timed)
        patch.replace(module.BaseResourceVariable, "assign", self.make_assign)
        patch.replace(module.BaseResourceVariable, "_restore_from_tensors", self._make_restore, quiet=True)

    def install_unlifted(self, module: Any) -> None:
        """Instrument the variables that a `tf.function` makes while it is traced."""
        owner = getattr(module, "UnliftedInitializerVariable", None)
        if owner is not None:
            timed = self.tracker.timed("initializers", "variable", "variable", leave=self._describe, when=_outermost)
            self.instruments.patch("TensorFlow").replace(owner, "__init__", timed)

    def _describe(self, attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        variable = args[0]
        value = kwargs.get("initial_value", args[1] if len(args) > 1 else None)
        attrs.update(describe_variable(variable.name, variable.shape, variable.dtype))
        attrs["initializer"] = initializer_name(value)
        attrs["created_in"] = self.created_in()
        attrs["object"] = self.tracker.renumber(variable)
        user_lines.with_site(attrs, 4)

    def created_in(self) -> str:
        """Say where a variable is being made."""
        if "trace" in self.tracker.stack():
            return "function"
        return "eager" if self.instruments.eager() else "graph"

    def make_assign(self, original: Any) -> Any:
        """Wrap `assign`: outside of training it is a load of some sort."""
        tracker, record = self.tracker, self._record_assignment

        def assign(self: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
            stack = tracker.stack()
            if stack and not NOT_A_LOAD.isdisjoint(stack):
                return original(self, value, *args, **kwargs)
            start_ns = now_ns()
            stack.append("variable")  # a Keras variable assigns to a TensorFlow variable: one assignment
            try:
                return original(self, value, *args, **kwargs)
            finally:
                stack.pop()
                record(self, start_ns)

        return assign

    def _make_restore(self, original: Any) -> Any:
        tracker, recorder = self.tracker, self.recorder

        def _restore_from_tensors(self: Any, restored_tensors: Any) -> Any:
            result = original(self, restored_tensors)
            recorder.write((ASSIGNED, tracker.number(self), now_ns()))
            return result

        return _restore_from_tensors

    def _record_assignment(self, variable: Any, start_ns: int) -> None:
        try:
            described = describe_variable(variable.name, variable.shape, variable.dtype)
            size = described["bytes"]
        except Exception:  # a shape that is not known has no bytes
            size = 0
        end_ns = now_ns()
        attrs: Attrs = {"kind": "assign", "bytes": size, "count": 1}
        self.recorder.span(start_ns, end_ns, "weights_assign", str(getattr(variable, "name", "variable")), attrs)
        self.recorder.write((ASSIGNED, self.tracker.number(variable), end_ns))


def _outermost(stack: list[str], args: tuple[Any, ...]) -> bool:
    return "variable" not in stack


def describe_variable(name: Any, shape: Any, dtype: Any) -> Attrs:
    """Return name, shape, dtype and bytes of a variable."""
    dims = [int(dim) for dim in shape]
    size = getattr(dtype, "size", None)
    text = getattr(dtype, "name", None) or str(dtype)
    if size is None:
        size = item_bytes(text)
    for dim in dims:
        size *= dim
    return {"name": str(name), "_name": str(name), "shape": dims, "dtype": text, "bytes": size}


def item_bytes(dtype: str) -> int:
    """Return the bytes of one element of a dtype by name: `float32` has 4."""
    if dtype == "bool":
        return 1
    digits = "".join(character for character in dtype if character.isdigit())[:3]
    return max(1, int(digits) // 8) if digits else 0


def initializer_name(value: Any) -> str:
    """Return the class of an initialiser, or `tensor` where a value was given."""
    if not callable(value):
        return "tensor"
    inner = value
    for cell in getattr(value, "__closure__", None) or ():
        try:
            content = cell.cell_contents
        except ValueError:
            continue
        if callable(content):
            inner = content
            break
    function = getattr(inner, "func", inner)  # functools.partial
    function = getattr(function, "__self__", function)
    name = type(function).__name__
    return str(getattr(function, "__qualname__", name)) if name in ("function", "method") else name
