"""`train.function`: `tf.function` for loops of one's own, with traces that outlive the process."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from . import switch
from .fingerprint.errors import NoKeyError
from .fingerprint.walker import Walker
from .trace import signature
from .trace.cached import CachedFunction
from .trace.signature import Arguments
from .trainer.optimizers import build_optimizer


def function(func: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Use in place of `tf.function`, with the same options.

    While `train.enable()` is on, the first call with a new kind of arguments restores a stored trace, or
    traces and stores. Otherwise, and wherever a trace cannot be proven safe to restore, it is exactly
    `tf.function`.
    """
    if func is None:
        return functools.partial(function, **options)
    import tensorflow as tf

    return StoredFunction(tf.function(func, **options), func)


class StoredFunction:
    """A `tf.function` that uses whatever caching is on when it is called. Other attributes are the
    function's.
    """

    def __init__(self, stock: Any, root: Any) -> None:
        self._stock = stock
        self._root = root
        self._cached: CachedFunction | None = None
        self._caching: Any = None
        self._bound: weakref.WeakKeyDictionary[Any, StoredFunction] = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, getattr(stock, "python_function", root), updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        caching = switch.current_caching()
        if caching is None:
            return self._stock(*args, **kwargs)
        if self._caching is not caching:
            self._caching, self._cached = caching, None
            try:
                self._cached = CachedFunction(self._stock, _FunctionSubject(self._root), caching)
            except Exception as error:  # nothing has run yet
                caching.failed(f"the function {self.__name__}", error)
        return (self._cached or self._stock)(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any) -> Any:
        """Make it possible to decorate methods."""
        if instance is None:
            return self
        if instance not in self._bound:
            stock = self._stock.__get__(instance, owner)
            self._bound[instance] = StoredFunction(stock, (self._root, weakref.ref(instance)))
        return self._bound[instance]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_stock"], name)


class _FunctionSubject:
    """A function of the user's, with everything its closure and its globals reach."""

    def __init__(self, root: Any) -> None:
        self._root = root
        name = (root[0] if isinstance(root, tuple) else root).__qualname__
        self.kind = f"function {name}"
        self.label = f"the function {name}"

    def build(self, arguments: Arguments) -> None:
        """Build the optimizer if it is plain for which variables: one model, one optimizer."""
        walker = self._walked(arguments)
        models = [each for each in walker.parts if _is_model(each)]
        compiled = [each.optimizer for each in models if getattr(each, "optimizer", None) is not None]
        optimizers = [each for each in walker.parts if _is_optimizer(each) and each not in compiled]
        layers = [each for each in walker.parts if _is_layer(each)]
        unbuilt = [each for each in [*layers, *optimizers] if not each.built]
        inner = [part for each in layers for part in (*each._layers, getattr(each, "_functional", None))]
        roots = [each for each in models if not any(each is part for part in inner)]
        if len(roots) == 1 and len(optimizers) == 1 and unbuilt == optimizers:
            build_optimizer(optimizers[0], roots[0].trainable_variables)
            return
        if not unbuilt:
            return
        name = getattr(unbuilt[0], "name", type(unbuilt[0]).__name__)
        raise NoKeyError(f"{name} is not built; build it before the first call, or it creates variables inside")

    def walk(self, arguments: Arguments) -> Walker:
        """Walk the function and the arguments."""
        walker = self._walked(arguments)
        walker.finish()
        return walker

    def before_trace(self, arguments: Arguments) -> None:
        """Nothing else is traced along with it that is not its own."""

    def traced(self, trace: Callable[[], Any]) -> Any:
        """Make a trace."""
        return trace()

    def is_served_otherwise(self, arguments: Arguments) -> bool:
        """Nothing else is traced along with it that is not its own."""
        return False

    def served(self, arguments: Arguments) -> None:
        """Nothing else was traced along with it that is not its own."""

    def _walked(self, arguments: Arguments) -> Walker:
        walker = Walker()
        walker.stream.enter("function")
        walker.stream.leaf("name", "name", self.kind)
        signature.visit_inputs(walker, arguments)
        walker.stream.enter("code")
        walker.code.judge.converts = True
        walker.visit(self._root, "function")
        return walker


def _is_model(value: Any) -> bool:
    import keras

    return isinstance(value, keras.Model)


def _is_layer(value: Any) -> bool:
    import keras

    return isinstance(value, keras.Layer)


def _is_optimizer(value: Any) -> bool:
    import keras

    return isinstance(value, keras.optimizers.Optimizer)
