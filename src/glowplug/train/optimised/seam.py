"""Where TensorFlow is changed: the method by which a traced function is called with flat tensors.

Only the first eager call of a traced function is looked at. Tracing, dispatch and all else stay TensorFlow's own.
Only a method whose source is known is replaced; with another version of TensorFlow all calls stay stock.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from glowplug.train.fingerprint.stock.trusted import is_stock_file
from glowplug.train.trace import collect
from glowplug.train.trace.cached import plain_eager
from glowplug.train.trainer.seam import source_digest

if TYPE_CHECKING:
    from glowplug.train.caching import Caching

# SHA-256 of the source of `ConcreteFunction._call_flat` and of the method it calls.
KNOWN_SOURCES = {
    "_call_flat": frozenset({"b580254434fab7ed766b5b7a3ff316ab93bc0b58ac0350520d2b5caa8830a0cd"}),
    "call_preflattened": frozenset({"93348714ccaa19efca4129c649ed730b26123137a1f13cfa12188d10a204ee5a"}),
    "call_flat": frozenset({"291dd373201e0847ced0c03c197ea0b5489e857a8452e6f1e49f4ba8376a4f8e"}),
}


def unknown_methods() -> list[str]:
    """Return the methods whose source in the installed TensorFlow is not known."""
    from tensorflow.python.eager.polymorphic_function.atomic_function import AtomicFunction
    from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction

    owners = {"_call_flat": ConcreteFunction, "call_preflattened": AtomicFunction, "call_flat": AtomicFunction}
    return [
        name for name, owner in owners.items() if source_digest(getattr(owner, name, None)) not in KNOWN_SOURCES[name]
    ]


class CallPatch:
    """Replaces the method, and puts it back."""

    def __init__(self, caching: Caching) -> None:
        from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction

        self._owner = ConcreteFunction
        self._stock = ConcreteFunction._call_flat
        self._first = FirstCalls(caching, self._stock)

    def apply(self) -> None:
        """Replace the method."""
        first, stock = self._first, self._stock

        def _call_flat(self: Any, tensor_inputs: Any, captured_inputs: Any) -> Any:
            call = first if first.wanted(self) else stock
            return call(self, tensor_inputs, captured_inputs)

        self._owner._call_flat = _call_flat

    def revert(self) -> None:
        """Put the stock method back."""
        self._owner._call_flat = self._stock


class FirstCalls:
    """The first eager call of each traced function: its stored graph is attached, or its graph is kept."""

    def __init__(self, caching: Caching, stock: Callable[..., Any]) -> None:
        self._caching = caching
        self._stock = stock
        self._lock = threading.Lock()

    def wanted(self, concrete: Any) -> bool:
        """Whether this call is one to look at; if not, a later one may be."""
        caching = self._caching
        return caching.optimised.is_new(concrete) and caching.active and plain_eager() and not collect.busy()

    def __call__(self, concrete: Any, tensors: Any, captures: Any) -> Any:
        """Run the function for the first time."""
        if not self._lock.acquire(blocking=False):  # another function's first call is under way in another thread
            return self._stock(concrete, tensors, captures)
        try:
            return self._run(concrete, tensors, captures)
        finally:
            self._lock.release()

    def _run(self, concrete: Any, tensors: Any, captures: Any) -> Any:
        graphs = self._caching.optimised
        lookup = graphs.attach(concrete)
        if lookup.large and _called_by_user():
            self._caching.notes.warn(
                f"the function {concrete.graph.name} is traced in every run: with @glowplug.train.function in place "
                "of @tf.function its trace is kept"
            )
        if lookup.missing is None:
            return self._stock(concrete, tensors, captures)
        with collect.collecting() as collected:
            result = self._stock(concrete, tensors, captures)
        graphs.keep(lookup, concrete, collected)
        return result


def _called_by_user() -> bool:
    """Whether the program itself calls the function, not Keras and not Glowplug."""
    import tensorflow as tf

    skipped = (str(Path(tf.__file__).parent), str(Path(__file__).parent))
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(skipped):
        frame = frame.f_back
    return frame is not None and not is_stock_file(frame.f_code.co_filename)
