"""Where Keras' trainer is changed: the method that makes the functions of `fit`, `evaluate` and `predict`.

Only a method whose source is known is replaced; with another version of Keras everything stays stock. The
known method still makes its own functions, and those are what gets traced and what runs when caching does not
apply.
"""

from __future__ import annotations

import hashlib
import inspect
import tokenize
from collections.abc import Callable
from functools import cache, wraps
from types import CodeType
from typing import Any

from glowplug.train.caching import Caching
from glowplug.train.trace.cached import CachedFunction

from .step import ModelStep

# SHA-256 of the methods' source. Keras 3.12 to 3.15 share one.
KNOWN_SOURCES = {
    "_make_function": frozenset({"bb33b7a0da3d27406c70fac54b8e9617156ef225f452b93f6addf8cc34aca0d0"}),
    "make_predict_function": frozenset({"a772a2efdd906f9a9ad6a19ec988d48455792fef5857a2b4ddc55b677ac350b3"}),
}

_ROLES = {"train_step": "train", "test_step": "test"}


def unknown_methods() -> list[str]:
    """Return the methods whose source in the installed Keras is not known, or that it does not have."""
    from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

    return [
        name
        for name, known in KNOWN_SOURCES.items()
        if source_digest(getattr(TensorFlowTrainer, name, None)) not in known
    ]


def source_digest(function: Any) -> str:
    """Return the digest of a function's source, or an empty text if it has none."""
    code = getattr(function, "__code__", None)
    return _digest(code) if isinstance(code, CodeType) else ""


@cache
def _digest(code: CodeType) -> str:
    # What `inspect.getsource` returns. It looks for the module first, with an `lstat` for each folder above each
    # module of the process: a tenth of a second.
    try:
        with tokenize.open(code.co_filename) as file:
            lines = file.readlines()[code.co_firstlineno - 1 :]
    except (OSError, SyntaxError):
        return ""
    return hashlib.sha256("".join(inspect.getblock(lines)).encode()).hexdigest()


class Patch:
    """Replaces the two methods, and puts them back."""

    def __init__(self, caching: Caching) -> None:
        from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

        self._owner = TensorFlowTrainer
        self._stock = {name: getattr(TensorFlowTrainer, name) for name in KNOWN_SOURCES}
        self._caching = caching

    def apply(self) -> None:
        """Replace the methods."""
        caching, stock = self._caching, self._stock

        @wraps(stock["_make_function"])  # `help(keras.Model)` shows what it always did
        def _make_function(self: Any, step_function: Any) -> Any:
            return make_function(caching, stock["_make_function"], self, step_function)

        @wraps(stock["make_predict_function"])
        def make_predict_function(self: Any, force: bool = False) -> Any:
            return make_predict(caching, stock["make_predict_function"], self, force)

        self._owner._make_function = _make_function
        self._owner.make_predict_function = make_predict_function

    def revert(self) -> None:
        """Put the stock methods back."""
        for name, method in self._stock.items():
            setattr(self._owner, name, method)


def make_function(caching: Caching, stock: Callable[..., Any], model: Any, step_function: Any) -> Any:
    """Return what `fit` and `evaluate` call with an iterator, and `train_on_batch` with a generator."""
    stock_function = stock(model, step_function)
    label = f"the steps of {type(model).__name__}"
    try:
        role = _ROLES.get(getattr(step_function, "__name__", ""))
        reason = why_stock(model) or ("" if role else "its step is not a method of the model")
        if not reason:
            return _cached_steps(caching, stock_function, model, str(role))
        caching.notes.warn(f"{label} run as in stock Keras: {reason}")
    except Exception as error:  # nothing has run yet
        caching.failed(label, error)
    return stock_function


def _cached_steps(caching: Caching, stock_function: Any, model: Any, role: str) -> Any:
    import tensorflow as tf

    cells = dict(zip(stock_function.__code__.co_freevars, stock_function.__closure__, strict=True))
    on_iterator = cells["multi_step_on_iterator"].cell_contents
    on_data = cells["one_step_on_data"].cell_contents.__wrapped__
    inner = CachedFunction(on_data, ModelStep(model, role, "on data"), caching)
    cached_iterator = CachedFunction(on_iterator, ModelStep(model, role, "on an iterator", inner), caching)
    cached_data = model._autoconvert_optionals(inner)

    def function(iterator: Any) -> Any:
        if not caching.active or model.run_eagerly or isinstance(iterator, tf.distribute.DistributedIterator):
            return stock_function(iterator)
        if isinstance(iterator, tf.data.Iterator):
            outputs = cached_iterator(iterator)
            if model.steps_per_execution != 1 and not outputs.has_value():
                raise StopIteration
            return outputs.get_value()
        for _, data in zip(range(model.steps_per_execution), iterator, strict=False):
            outputs = cached_data(data)
        return outputs

    return function


def make_predict(caching: Caching, stock: Callable[..., Any], model: Any, force: bool) -> Any:
    """Set what `predict` and `predict_on_batch` call with a list of batches."""
    if model.predict_function is not None and not force:
        return model.predict_function
    result = stock(model, force)
    label = f"{type(model).__name__}.predict"
    try:
        reason = why_stock(model)
        if reason:
            caching.notes.warn(f"{label} runs as in stock Keras: {reason}")
        else:
            step = ModelStep(model, "predict", "on data")
            model.predict_function = CachedFunction(model.predict_function, step, caching)
    except Exception as error:  # nothing has run yet
        caching.failed(label, error)
    return result


def why_stock(model: Any) -> str:
    """Return why a model's steps are left to Keras, or an empty text."""
    import tensorflow as tf

    if model.run_eagerly or tf.config.functions_run_eagerly():
        return "run_eagerly is on"
    if model._distribute_strategy is not None or tf.distribute.has_strategy():
        return "it runs under a tf.distribute strategy"
    return ""
