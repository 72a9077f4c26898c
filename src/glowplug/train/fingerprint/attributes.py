"""Which attributes of an object a trace can depend on.

The answer is: all of `__dict__` and all slots, but for the ones listed here. Each list belongs to one base
class of Keras or TensorFlow and holds for its subclasses, custom ones too, because the names are the base
class's own. The reason is one of three: the attribute is bookkeeping that is never read while a step is
traced, it is derived from something that is in the key, or it is an automatic name. Names of metrics stay:
they become keys of the logs.
"""

from __future__ import annotations

import contextlib
import types
from functools import lru_cache
from typing import Any

from glowplug.train.fingerprint.stock.trusted import is_stock_file

from .errors import NoKeyError

_DICT = vars(type("", (), {}))["__dict__"]  # how a class statement gives instances their attributes

# TensorFlow's checkpoint bookkeeping on every trackable object.
_TRACKABLE = {
    "_self_setattr_tracking",
    "_self_unconditional_checkpoint_dependencies",
    "_self_unconditional_dependency_names",
    "_self_unconditional_deferred_dependencies",
    "_self_update_uid",
    "_self_name_based_restores",
    "_self_saveable_object_factories",
    "_tracked",
}

_OPERATION = {
    "name",
    "_auto_config",
    "_inbound_nodes",  # the nodes a model runs are in its own `_nodes_by_depth`
    "_outbound_nodes",
}

_LAYER = {
    "_tracker",  # its lists are the attributes `_layers`, `_metrics`, `_trainable_variables`, ...
    "_path",
    "_parent_path",
    "_called",
    "_saved_model_inputs_spec",
    "_saved_model_arg_spec",
    "_build_shapes_dict",
    "_call_signature",
    "_losses",  # cleared at the start of every call
    "_loss_ids",
    "_dropout_mask",  # made anew in every call of a recurrent cell
    "_recurrent_dropout_mask",
}

_MODEL = {
    "train_function",
    "test_function",
    "predict_function",
    "stop_training",
    "stop_evaluating",
    "stop_predicting",
    "_eval_epoch_iterator",
    "_initial_epoch",
    "_compile_config",  # its values are the optimizer, the loss and the metrics themselves
    "_compiled_trainable_state",
    "_nodes",  # strings of object ids; `_nodes_by_depth` holds the nodes
}

_OPTIMIZER = {
    "name",
    "_lock",
    "_tracker",
    "_trainable_variables_indices",  # the positions in `_trainable_variables`, by unique name
    "_distribution_strategy",  # a step under a strategy is never cached
    "_exclude_from_weight_decay_cache",
}

# Custom code that reads one of these sees something that a key leaves out. Names are handled apart.
PRIVATE = frozenset(
    ((_TRACKABLE | _OPERATION | _LAYER | _MODEL | _OPTIMIZER) - {"name", "_path", "_lock"})
    | {"_initial_seed", "history", "_glowplug_read_early", "_glowplug_unset"}
)
# Wrapped copies of methods that are hashed with the class, and whether attributes may be tracked: nothing else is put
# there by Keras.
_OF_LAYERS = {"build": types.FunctionType, "quantize": types.FunctionType, "_lock": bool}

_METRIC = {"_tracker"}
_LOSS = {"_tracker", "name"}
_SEED_GENERATOR = {"name", "backend", "_initial_seed"}  # only the first value of its state variable
_NODE = {"id"}
_ARGUMENTS = {"_flat_arguments", "_single_positional_tensor", "keras_tensors"}


def attributes_of(value: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all attributes of an object, and those that belong in a key, by name. No code of its class is run."""
    kind: Any = type(value)
    everything: dict[str, Any] = {}
    for base in reversed(type.__getattribute__(kind, "__mro__")):
        space = type.__getattribute__(base, "__dict__")
        for name, member in space.items():
            if type(member) is types.MemberDescriptorType and name != "__dict__":
                with contextlib.suppress(AttributeError):
                    everything[name] = member.__get__(value, kind)
        if type(space.get("__dict__", _DICT)) not in (types.GetSetDescriptorType, types.MemberDescriptorType):
            raise NoKeyError(f"{kind.__qualname__} hides the attributes of its instances")
        if any(type(space.get(name)) is not types.MemberDescriptorType for name in _slots(base)):
            raise NoKeyError(f"{kind.__qualname__} hides a slot of its instances")
    with contextlib.suppress(AttributeError):
        everything.update(object.__getattribute__(value, "__dict__"))
    found = dict(everything)
    for name in _ignored_by(kind):
        found.pop(name, None)
    for name, usual in _OF_LAYERS.items():
        if type(found.get(name)) is usual and issubclass(kind, _layer()) and _is_of_keras(found[name]):
            found.pop(name)
    history, trainer = _history_and_trainer()
    if type(found.get("history")) is history and issubclass(kind, trainer):
        found.pop("history")  # the callback that `fit` leaves on a model; code that reads it is objected to
    if found.get("_exclude_from_weight_decay"):
        found["_exclude_from_weight_decay"] = _positions_of(value, found["_exclude_from_weight_decay"])
    return everything, _without_single_output_names(value, found)


def _is_of_keras(value: object) -> bool:
    """Keras' wrappers say that they are of the module of what they wrap."""
    if type(value) is not types.FunctionType:
        return True
    filename = value.__code__.co_filename
    return is_stock_file(filename) and not filename.startswith("<")


@lru_cache(maxsize=1)
def _layer() -> type[Any]:
    from keras.src.layers.layer import Layer

    found: type[Any] = Layer
    return found


@lru_cache(maxsize=1)
def _history_and_trainer() -> tuple[type[Any], type[Any]]:
    from keras.src.callbacks.history import History
    from keras.src.trainers.trainer import Trainer

    return History, Trainer


def _positions_of(optimizer: Any, keys: Any) -> Any:
    """Return the positions of an optimizer's variables; it knows them by numbers that mean nothing elsewhere."""
    if not _is_keras(optimizer):
        return keys
    variables = enumerate(optimizer._trainable_variables)
    return [index for index, variable in variables if optimizer._var_key(variable) in keys]


def _slots(base: type[Any]) -> list[str]:
    slots = base.__dict__.get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    mangled = [f"_{base.__name__.lstrip('_')}{n}" if n.startswith("__") and not n.endswith("__") else n for n in names]
    return [name for name in mangled if name not in ("__dict__", "__weakref__")]


def _without_single_output_names(value: object, found: dict[str, Any]) -> dict[str, Any]:
    # The output's name reaches the logs only where there are several outputs.
    names = found.get("output_names")
    if names is None or len(names) != 1 or not _is_keras(value):
        return found
    found.pop("output_names")
    if found.get("_flat_losses"):
        found["_flat_losses"] = [(loss.path, loss.loss, loss.loss_weights) for loss in found["_flat_losses"]]
    return found


def _is_keras(value: object) -> bool:
    return any(base.__module__.startswith("keras.") for base in type(value).__mro__)


@lru_cache(maxsize=4096)
def _ignored_by(kind: Any) -> frozenset[str]:
    return frozenset().union(*(names for base, names in _table() if issubclass(kind, base)))


@lru_cache(maxsize=1)
def _table() -> list[tuple[type[Any], frozenset[str]]]:
    from keras.src.layers.layer import Layer
    from keras.src.losses.loss import Loss
    from keras.src.metrics.metric import Metric
    from keras.src.ops.node import Node
    from keras.src.ops.operation import Operation
    from keras.src.ops.symbolic_arguments import SymbolicArguments
    from keras.src.optimizers.base_optimizer import BaseOptimizer
    from keras.src.random.seed_generator import SeedGenerator
    from keras.src.trainers.trainer import Trainer
    from tensorflow.python.trackable.base import Trackable

    return [
        (Trackable, frozenset(_TRACKABLE)),
        (Operation, frozenset(_OPERATION)),
        (Layer, frozenset(_LAYER)),
        (Trainer, frozenset(_MODEL)),
        (BaseOptimizer, frozenset(_OPTIMIZER)),
        (Metric, frozenset(_METRIC)),
        (Loss, frozenset(_LOSS)),
        (SeedGenerator, frozenset(_SEED_GENERATOR)),
        (Node, frozenset(_NODE)),
        (SymbolicArguments, frozenset(_ARGUMENTS)),
    ]
