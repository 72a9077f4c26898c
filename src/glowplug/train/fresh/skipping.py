"""`skip_init()`: build a model without running its initialisers, when its weights are loaded anyway.

A variable made inside has its shape and dtype and no value: no random numbers are drawn and no memory is
touched until something is assigned. Only weights of layers are skipped; counters, seeds, metrics and
optimizers are small or have no file to come from, and start as always.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from glowplug.core.errors import WeightsError
from glowplug.train.collector import collector_paused

_SHOWN_NAMES = 5
_SHARED_SCOPE = "unset/"
_patching = threading.RLock()


@contextlib.contextmanager
def skip_init() -> Iterator[None]:
    """Make the weights of layers that are built inside the block without values.

    Load or assign them before the block ends: leaving it, or calling a model before its weights are there,
    raises `WeightsError` with the names of those that were forgotten. A layer that is called on numbers while the
    model is built, such as an embedding of positions, needs its weights now: its own initialisers run.
    """
    scope = Scope(layers_only=True)
    with scope.active():
        yield
    unset = scope.unset()
    if unset:
        raise _forgotten([variable for variable, _ in unset])


@contextlib.contextmanager
def fill_init() -> Iterator[None]:
    """Like `skip_init`, but what was not assigned inside runs its own initialiser at the end."""
    scope = Scope(layers_only=False)
    with scope.active():
        yield
    scope.fill()


class Scope:
    """One block: which variables were made in it, and with which initialiser."""

    def __init__(self, *, layers_only: bool) -> None:
        self._layers_only = layers_only
        self._pending: list[tuple[weakref.ref[Any], Callable[..., Any]]] = []
        self._deferred: set[int] = set()
        self._inside_layer = 0
        self._eager_models = self._eager_layers = 0  # calls on numbers that are under way
        self._thread = threading.get_ident()

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Replace three methods of Keras for the length of a block; other threads do not notice."""
        from keras.src.backend.tensorflow.core import Variable
        from keras.src.layers.layer import Layer

        stock = Variable._initialize_with_initializer, Layer.add_weight, Layer.__call__
        scope = self

        def initialize(variable: Any, initializer: Any) -> None:
            if scope._skips(variable):
                scope._make_without_value(variable, initializer)
            else:
                stock[0](variable, initializer)

        def add_weight(layer: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != scope._thread:
                return stock[1](layer, *args, **kwargs)
            scope._inside_layer += 1
            try:
                variable = stock[1](layer, *args, **kwargs)
            finally:
                scope._inside_layer -= 1
            if variable._value is None:  # Keras makes it later, when it leaves a symbolic scope
                scope._deferred.add(id(variable))
            return variable

        def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
            with scope._calling(layer, args, kwargs):
                return stock[2](layer, *args, **kwargs)

        with _patching:
            Variable._initialize_with_initializer, Layer.add_weight, Layer.__call__ = (
                initialize,
                add_weight,
                call,
            )
            try:
                with collector_paused():
                    yield
            finally:
                Variable._initialize_with_initializer, Layer.add_weight, Layer.__call__ = stock

    def unset(self) -> list[tuple[Any, Callable[..., Any]]]:
        """Return the variables that still have no value, with their initialisers."""
        alive = ((reference(), initializer) for reference, initializer in self._pending)
        return [
            (variable, initializer)
            for variable, initializer in alive
            if variable is not None and not _has_value(variable)
        ]

    def fill(self) -> None:
        """Run the initialiser of every variable that has no value."""
        for variable, initializer in self.unset():
            variable._direct_assign(initializer(variable._shape, dtype=variable._dtype))

    def _skips(self, variable: Any) -> bool:
        if threading.get_ident() != self._thread or not _plain_creation():
            return False
        return not self._layers_only or self._inside_layer > 0 or id(variable) in self._deferred

    def _make_without_value(self, variable: Any, initializer: Any) -> None:
        from tensorflow.python.framework import dtypes

        reference = weakref.ref(variable)
        variable._value = _unset_variable_class()(
            read_early=lambda: self._read_early(reference(), initializer),
            trainable=variable.trainable,
            name=variable.name,
            shape=variable._shape,
            dtype=dtypes.as_dtype(variable._dtype),
            synchronization=variable._map_synchronization(variable.synchronization),
            aggregation=variable._map_aggregation(variable.aggregation),
        )
        self._pending.append((reference, initializer))

    @contextlib.contextmanager
    def _calling(self, layer: Any, args: Any, kwargs: Any) -> Iterator[None]:
        """Keep count of calls on numbers; refuse that of a model whose weights are not there."""
        import keras
        import tensorflow as tf
        from keras.src.backend.common.keras_tensor import any_symbolic_tensors

        own = self._layers_only and threading.get_ident() == self._thread
        if not own or not tf.executing_eagerly() or any_symbolic_tensors(args, kwargs):
            yield
            return
        is_model = isinstance(layer, keras.Model)
        if is_model:
            wanted = {id(variable) for variable in layer.variables}
            missing = [variable for variable, _ in self.unset() if id(variable) in wanted]
            if missing:
                raise _forgotten(missing)
        self._eager_models += is_model
        self._eager_layers += not is_model
        try:
            yield
        finally:
            self._eager_models -= is_model
            self._eager_layers -= not is_model

    def _read_early(self, variable: Any, initializer: Callable[..., Any]) -> None:
        """Give a variable that is read its initial value where a layer outside of any model needs it, else raise."""
        if variable is None or self._eager_models or not self._eager_layers:
            path = "a variable of a layer that is gone" if variable is None else variable.path
            raise ReadTooEarlyError("a variable was read before it was loaded or assigned", seen=path)
        variable._direct_assign(initializer(variable._shape, dtype=variable._dtype))


def _plain_creation() -> bool:
    """Whether a variable is made here and now as TensorFlow makes it: no strategy and no creator has a say in it."""
    import tensorflow as tf
    from tensorflow.python.framework import ops

    return (
        tf.executing_eagerly()
        and not tf.distribute.has_strategy()
        and not ops.get_default_graph()._variable_creator_stack
    )


def _forgotten(variables: list[Any]) -> WeightsError:
    names = [variable.path for variable in variables]
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return WeightsError(
        "variables were neither loaded nor assigned",
        seen=", ".join(names[:_SHOWN_NAMES]) + more,
        remedy="load the weights inside `with train.skip_init()`, or build the model outside of it",
    )


class ReadTooEarlyError(WeightsError):
    """A variable without a value was read."""


@lru_cache(maxsize=1)
def _unset_variable_class() -> Any:
    """Return the class of variables without a value: TensorFlow's own, which reading must not turn
    into nothing.
    """
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops
    from tensorflow.python.ops.resource_variable_ops import UninitializedVariable

    class UnsetVariable(UninitializedVariable):  # type: ignore[misc]
        def __init__(self, read_early: Callable[[], None], name: str, **options: Any) -> None:
            with ops.name_scope(name, skip_on_eager=False) as scope:
                full_name = ops.name_from_scope_name(scope)
            # The name is an attribute of the operation that makes the handle: each new one costs TensorFlow a new
            # kernel. So it is made under one name for all, and gets its own here.
            super().__init__(name=_SHARED_SCOPE, **options)
            self._handle_name = self.handle._name = f"{full_name}:0"
            self._glowplug_read_early = read_early
            self._glowplug_unset = True

        def _read_variable_op(self, *args: Any, **kwargs: Any) -> Any:
            # TensorFlow reads a tensor without elements here, and says nothing.
            if self._glowplug_unset and context.executing_eagerly():
                if not _is_initialized(self):
                    self._glowplug_read_early()
                self._glowplug_unset = False
            return super()._read_variable_op(*args, **kwargs)

    return UnsetVariable


def _has_value(variable: Any) -> bool:
    return _is_initialized(variable._value)


def _is_initialized(resource: Any) -> bool:
    from tensorflow.python.ops.resource_variable_ops import var_is_initialized_op

    return bool(var_is_initialized_op(resource.handle))


class LoadPatch:
    """While caching is on, `keras.models.load_model` runs no initialiser whose result the file replaces."""

    def __init__(self) -> None:
        from keras.src.legacy.saving import legacy_h5_format
        from keras.src.saving import saving_lib

        self._places = [(saving_lib, "load_model"), (legacy_h5_format, "load_model_from_hdf5")]
        self._stock = [getattr(module, name) for module, name in self._places]

    def apply(self) -> None:
        """Replace the two functions that `load_model` calls."""
        for (module, name), stock in zip(self._places, self._stock, strict=True):
            setattr(module, name, _skipping(stock))

    def revert(self) -> None:
        """Put the stock functions back."""
        for (module, name), stock in zip(self._places, self._stock, strict=True):
            setattr(module, name, stock)


def _skipping(stock: Callable[..., Any]) -> Callable[..., Any]:
    def load_model(*args: Any, **kwargs: Any) -> Any:
        try:
            with fill_init():
                return stock(*args, **kwargs)
        except ReadTooEarlyError:
            # A layer reads its own weights while it is built: load it as Keras does.
            return stock(*args, **kwargs)

    return load_model
