"""The variables of a model that weights are for, and names for them that two builds of a model share."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from glowplug.core.errors import UsageError, WeightsError

_COUNTER = re.compile(r"_\d+$")


@dataclass(frozen=True, slots=True)
class LoadableVariable:
    """A variable that can be loaded. The state of random generators is not `required`: a file may lack it."""

    name: str
    variable: Any
    required: bool


def targets(model: Any) -> tuple[LoadableVariable, ...]:
    """Return the model's weights and the state of its random generators, in order, under unique names."""
    import keras

    if not isinstance(model, keras.Model):
        raise UsageError(
            "not a Keras 3 model",
            seen=f"{type(model).__module__}.{type(model).__name__}",
            remedy="pass a keras.Model (tf_keras models have their own load_weights)",
        )
    weights = {id(variable) for variable in model.weights}
    measured = {id(variable) for metric in model.metrics for variable in metric.variables}
    chosen = [one for one in model.variables if id(one) in weights or id(one) not in measured]
    if not model.built or not chosen:
        raise WeightsError(
            "the model has no variables yet", seen=model.name, remedy="call model.build(input_shape), or call it once"
        )
    names = unique_names([variable.path for variable in chosen])
    return tuple(
        LoadableVariable(name, variable, id(variable) in weights) for name, variable in zip(names, chosen, strict=True)
    )


def unique_names(paths: list[str]) -> list[str]:
    """Tell equal paths apart, in order: two layers of one name give their variables the same paths."""
    taken: Counter[str] = Counter()
    names = []
    for path in paths:
        taken[path] += 1
        names.append(path if taken[path] == 1 else f"{path}#{taken[path]}")
    return names


def without_counters(name: str) -> str:
    """Drop what Keras appends to automatic names: `dense_2/kernel` and `dense/kernel` are the same place."""
    return "/".join(_COUNTER.sub("", part) for part in name.partition("#")[0].split("/"))
