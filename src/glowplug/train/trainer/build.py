"""Builds what a step would create while it is traced, so that it is traced once.

TensorFlow traces a function twice when the first trace creates variables. Keras creates the optimizer's slots
and the state of metrics inside the first step. Here they are built from specifications, before the step is
traced, in the way Keras builds them for its other backends.
"""

from __future__ import annotations

from typing import Any

from glowplug.train.fingerprint.errors import NoKeyError

from .handed_over import BuiltAhead, put_back, state_of
from .optimizers import build_optimizer

_CHOSEN_BY_SHAPE = frozenset({"accuracy", "acc", "crossentropy", "ce"})


def build_for(model: Any, role: str, data: Any) -> list[BuiltAhead]:
    """Build the model and, for `train` and `test`, loss, metrics and optimizer; raise `NoKeyError` if it
    cannot. Return the loss and metrics that a step of the user's own may turn out to give something else.
    """
    try:
        return _build(model, role, data)
    except NoKeyError:
        raise
    except Exception as error:  # user code runs here; whatever it raises will be raised again by the step itself
        reason = str(error).strip().splitlines()
        raise NoKeyError(f"it cannot be built before its first step ({reason[0] if reason else error!r})") from error


def _build(model: Any, role: str, data: Any) -> list[BuiltAhead]:
    from keras.src.trainers.data_adapters import data_adapter_utils

    if role != "predict" and not _has_call(model):
        return []  # nothing tells how its layers are called; its first trace does: `learned_builds`
    unbuilt = not all(layer.built for layer in model._flatten_layers())
    if unbuilt and not _has_stock_step(model, role):
        return []  # `call` is no promise: the step may give its layers something else, or in another order
    if role == "predict" and not unbuilt:
        return []
    x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(_symbolic(data))
    prediction = None
    if _has_stock_step(model, role) or not all(part.built for part in _compiled_parts(model)):
        try:
            prediction = _prediction(model, x, unbuilt=unbuilt, training=role == "train")
        except Exception:
            if _has_stock_step(model, role):
                raise
            return []  # `call` takes something else than what its step is given
    if role == "predict":
        return []
    if not _has_stock_step(model, role) and _only_the_step_knows(model, y, prediction):
        return []
    unbuilt_parts = {id(part): state_of(part) for part in _compiled_parts(model) if not part.built}
    try:
        _build_metrics_and_loss(model, role, (x, y, prediction), sample_weight)
    except Exception:
        for part in _compiled_parts(model):
            if id(part) in unbuilt_parts:
                put_back(part, unbuilt_parts[id(part)])
        if _has_stock_step(model, role):
            raise
        return []  # they are made for labels, say, that its step makes
    if role == "train" and model.optimizer is not None and not model.optimizer.built:
        build_optimizer(model.optimizer, model.trainable_variables)
    if _has_stock_step(model, role):
        return []
    return [
        BuiltAhead(part, unbuilt_parts[id(part)], (y, prediction))
        for part in _compiled_parts(model)
        if part.built and id(part) in unbuilt_parts
    ]


def _compiled_parts(model: Any) -> list[Any]:
    return [part for part in (model._compile_metrics, model._compile_loss) if part is not None]


def _has_call(model: Any) -> bool:
    """Whether a model can be called: a `train_step` of one's own need not call the model it belongs to."""
    from keras.src.layers.layer import Layer
    from keras.src.models.model import Model

    return type(model).call not in (Layer.call, Model.call)


def _build_metrics_and_loss(model: Any, role: str, arguments: tuple[Any, Any, Any], sample_weight: Any) -> None:
    from keras.src import backend

    metrics, loss = model._compile_metrics, model._compile_loss
    if metrics is not None and not metrics.built:
        backend.compute_output_spec(model.compute_metrics, *arguments, sample_weight=sample_weight)
    if loss is not None and not loss.built and _uses_compiled_loss(model, role):
        training = role == "train"
        backend.compute_output_spec(model._compute_loss, *arguments, sample_weight=sample_weight, training=training)


def _uses_compiled_loss(model: Any, role: str) -> bool:
    """A step of the user's own may not use the compiled loss: built without need it would add metrics to the
    logs.
    """
    if _has_stock_step(model, role):
        return True
    code = getattr(getattr(type(model), f"{role}_step"), "__code__", None)
    return code is not None and bool({"compute_loss", "_compute_loss", "compiled_loss"} & set(code.co_names))


def _has_stock_step(model: Any, role: str) -> bool:
    from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

    name = f"{role}_step"
    return getattr(type(model), name) is getattr(TensorFlowTrainer, name)


def _only_the_step_knows(model: Any, y: Any, prediction: Any) -> bool:
    """Whether loss and metrics have to wait for a step of the user's own: they are made for the structure of what they
    are first given, and a few by its shape. It may be a part of what the model returns, or something else.
    """
    from keras.src import tree

    if all(part.built for part in _compiled_parts(model)):
        return False
    metrics, loss = model._compile_metrics, model._compile_loss
    asked = [metrics._user_metrics, metrics._user_weighted_metrics] if metrics is not None else []
    asked += [loss._user_loss] if loss is not None else []
    by_shape = {str(each).lower() for each in tree.flatten(asked)} & _CHOSEN_BY_SHAPE
    return bool(by_shape) or tree.is_nested(prediction) or tree.is_nested(y)


def _prediction(model: Any, x: Any, *, unbuilt: bool, training: bool) -> Any:
    """Return the specification of the model's output; a functional model knows it without being traced.

    A list of one output is that output once the model is called. Loss and metrics are made for what they see first.
    """
    from keras.src import backend, tree
    from keras.src.models import Functional, Sequential
    from keras.src.models.functional import unpack_singleton

    functional: Any = getattr(model, "_functional", None) if isinstance(model, Sequential) else model
    known = isinstance(functional, Functional) and type(model).call in (Functional.call, Sequential.call)
    if unbuilt or not known:
        return backend.compute_output_spec(model, x, training=training)
    batch = next(iter(tree.flatten(x))).shape[0]

    def with_batch(tensor: Any) -> Any:
        shape = tuple(tensor.shape)
        if shape and shape[0] is None:
            shape = (batch, *shape[1:])
        return backend.KerasTensor(shape, tensor.dtype, sparse=tensor.sparse, name="prediction")

    return unpack_singleton(tree.map_structure(with_batch, functional._outputs_struct))


def _symbolic(data: Any) -> Any:
    """Return data, or the specification of data, as Keras' symbolic tensors."""
    import tensorflow as tf
    from keras.src import backend, tree

    def convert(value: Any) -> Any:
        if value is None or isinstance(value, (tf.experimental.Optional, tf.OptionalSpec)):
            return None
        shape = tf.TensorShape(value.shape)
        if shape.rank is None:
            raise NoKeyError("the rank of its data is not known")
        sparse = isinstance(value, (tf.SparseTensor, tf.SparseTensorSpec))
        # A name of its own: an automatic one would shift the numbers that stock Keras shows in its messages.
        return backend.KerasTensor(tuple(shape), backend.standardize_dtype(value.dtype), sparse=sparse, name="data")

    return tree.map_structure(convert, data)
