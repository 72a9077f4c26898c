"""What a step builds while it is traced: seen in one run, done ahead in the next.

A `train_step` of one's own says nowhere but in its code how its layers are called, and which optimizer belongs to which
weights. Its first trace does. What was seen is kept under the key of everything the step reached before it, as a trace
is: layers, in the order in which they were built and with the same arguments, then optimizers.

Initial weights may be drawn from the global generators of `random` and numpy. They are the same ahead of the step only
if nothing else draws from them while it is traced; else nothing is kept.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.fingerprint.walker import Walker

# ["layer", number among the parts of a walk, path of its parent, encoded arguments]
# ["optimizer", number among the parts, [variables: a number of the walk's, or that of a part and of one of its own]]
Builds = list[list[Any]]


def unbuilt_parts(walker: Walker) -> list[int]:
    """Return the numbers of the layers and optimizers among what was walked that have no variables yet."""
    from keras.src.layers.layer import Layer
    from keras.src.optimizers.base_optimizer import BaseOptimizer

    kinds = (Layer, BaseOptimizer)
    return [number for number, part in enumerate(walker.parts) if isinstance(part, kinds) and not part.built]


class WatchedBuilds:
    """Watches which of these parts a trace builds, inside a `with` block."""

    def __init__(self, walker: Walker | None, unbuilt: list[int]) -> None:
        self._walker = walker
        self._unbuilt = unbuilt
        self._layers: Builds = []
        self._inside = 0
        self._drawn: list[Any] = []  # states of the generators: at the start, around each build, at the end

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the builds of layers; of optimizers it is enough to look at them afterwards."""
        from keras.src.layers.layer import Layer

        layers: dict[int, Any] = {}
        for number in self._unbuilt if self._walker is not None else ():
            assert self._walker is not None
            part = self._walker.parts[number]
            if isinstance(part, Layer):
                layers[number] = part
        if not layers:
            yield
            return
        stock = {number: vars(layer)["build"] for number, layer in layers.items()}
        self._drawn.append(_generators())
        for number, layer in layers.items():
            vars(layer)["build"] = self._noting(number, layer, stock[number])
        try:
            yield
        finally:
            for number, layer in layers.items():
                vars(layer)["build"] = stock[number]
            self._drawn.append(_generators())

    @property
    def began(self) -> bool:
        """Whether any layer was built: what is drawn for it is judged by `found`."""
        return bool(self._layers)

    def found(self) -> Builds:
        """Return what was built; raise `NoKeyError` if it could not be built ahead just so."""
        if self._walker is None:
            return []
        if self._layers and any(before != after for before, after in zip(*[iter(self._drawn)] * 2, strict=True)):
            raise NoKeyError("it draws from global generators of random numbers while its layers are built")
        layers = [[*place, encoded(arguments)] for *place, arguments in self._layers]
        return [*layers, *self._optimizers(self._walker)]

    def _noting(self, number: int, layer: Any, build: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(build)  # Keras asks for its signature, and whether it is the default
        def noting(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return build(*args, **kwargs)
            self._inside += 1
            self._drawn.append(_generators())
            try:
                return build(*args, **kwargs)
            finally:
                self._inside -= 1
                self._drawn.append(_generators())
                self._layers.append(["layer", number, getattr(layer, "_parent_path", None), [args, kwargs]])

        return noting

    def _optimizers(self, walker: Walker) -> Builds:
        from keras.src.optimizers.base_optimizer import BaseOptimizer

        places: dict[int, Any] = {id(variable): number for number, variable in enumerate(walker.variables)}
        for _, part, *_ in self._layers:
            for index, variable in enumerate(walker.parts[part].variables):
                places.setdefault(id(variable), [part, index])
        found: Builds = []
        for number in self._unbuilt:
            optimizer = walker.parts[number]
            if not isinstance(optimizer, BaseOptimizer) or not optimizer.built:
                continue
            variables = [places.get(id(variable)) for variable in optimizer._trainable_variables]
            if None in variables:
                raise NoKeyError(f"it builds {optimizer.name} with variables that were not there before its first step")
            found.append(["optimizer", number, variables])
        return found


def build_ahead(walker: Walker, builds: Builds) -> None:
    """Build layers and optimizers as a step of an earlier run did."""
    for kind, number, *rest in builds:
        part = walker.parts[number]
        if part.built:  # one may build another
            continue
        if kind == "layer":
            parent, arguments = rest
            if getattr(part, "_parent_path", None) is None:
                part._parent_path = parent
            args, kwargs = decoded(arguments)
            part.build(*args, **kwargs)
        else:
            (variables,) = rest
            part.build([_variable(walker, place) for place in variables])


def _variable(walker: Walker, place: Any) -> Any:
    if isinstance(place, list):
        part, index = place
        return walker.parts[part].variables[index]
    return walker.variables[place]


def encoded(value: Any) -> Any:
    """Return shapes, and what holds them, so that JSON keeps their types; raise `NoKeyError` for anything else."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) in (list, tuple):
        return [type(value).__name__, *map(encoded, value)]
    if type(value) is dict and all(type(key) is str for key in value):
        return ["dict", *([key, encoded(each)] for key, each in value.items())]
    raise NoKeyError(f"it builds a layer with a {type(value).__name__}")


def decoded(value: Any) -> Any:
    """Return what `encoded` was given."""
    if not isinstance(value, list):
        return value
    kind, *items = value
    if kind == "dict":
        return {key: decoded(each) for key, each in items}
    return (list if kind == "list" else tuple)(map(decoded, items))


def _generators() -> tuple[Any, Any]:
    """Return something that differs when a number was drawn from a global generator."""
    state: Any = np.random.get_state(legacy=True)
    name, keys, *rest = state
    return random.getstate(), (name, keys.tobytes(), *rest)
