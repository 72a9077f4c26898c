"""What a step builds while it is traced: seen in one run, done ahead in the next.

A `train_step` of one's own says nowhere but in its code how its layers are called, which optimizer belongs to which
weights, and what it gives to loss and metrics. Its first trace does. What was seen is kept under the key of everything
the step reached before it, as a trace is: layers, loss and metrics, in the order in which they were built and with the
same arguments, then optimizers. What is made on the way gets the automatic names that it got: the step makes more
between two builds, and Keras counts it. A layer may be made by the build of another, and built later: it has a number
among the layers of that one.

Initial weights may be drawn from the global generators of `random` and numpy. They are the same ahead of the step only
if nothing else draws from them while it is traced; else nothing is kept.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.fingerprint.walker import Walker

from .handed_over import build_by_use
from .optimizers import build_optimizer

# ["layer", its place, path of its parent, names that were counted before it, encoded arguments]
# ["compiled", the same for the loss or the metrics: what they are made for]
# ["optimizer", its place, [variables: a number of the walk's, or the place of a part and a number of one of its own]]
Builds = list[list[Any]]
Place = Any  # number among the parts of a walk, or the place of a layer and a number among the layers in it


def unbuilt_parts(walker: Walker) -> list[int]:
    """Return the numbers of the layers, losses, metrics and optimizers that were walked and are not built yet."""
    from keras.src.layers.layer import Layer
    from keras.src.optimizers.base_optimizer import BaseOptimizer

    kinds = (Layer, BaseOptimizer, *_compiled_kinds())
    return [number for number, part in enumerate(walker.parts) if isinstance(part, kinds) and not part.built]


class WatchedBuilds:
    """Watches which of these parts a trace builds, inside a `with` block."""

    def __init__(self, walker: Walker | None, unbuilt: list[int]) -> None:
        self._walker = walker
        self._unbuilt = unbuilt
        self._layers: Builds = []
        self._watched: list[tuple[Place, Any, Any]] = []  # with what it had for `build`: layers have one of their own
        self._inside = 0
        self._counted: dict[str, int] = {}  # names, before the trace
        self._drawn: list[Any] = []  # states of the generators: at the start, around each build, at the end

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the builds of layers, loss and metrics; of optimizers it is enough to look at them afterwards."""
        from keras.src.layers.layer import Layer

        kinds = (Layer, *_compiled_kinds())
        parts = [] if self._walker is None else [(number, self._walker.parts[number]) for number in self._unbuilt]
        if not any(isinstance(part, kinds) for _, part in parts):
            yield
            return
        self._drawn.append(_generators())
        self._counted = dict(_names())
        for number, part in parts:
            if isinstance(part, kinds):
                self._watch(number, part)
        try:
            yield
        finally:
            for _, part, stock in self._watched:
                vars(part)["build"] = stock
                if stock is None:
                    del vars(part)["build"]
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

    def _watch(self, place: Place, part: Any) -> None:
        self._watched.append((place, part, vars(part).get("build")))
        vars(part)["build"] = self._noting(place, part, part.build)

    def _watch_layers_in(self, place: Place, part: Any) -> None:
        """Watch the layers that a build has made and not built: whoever calls them will."""
        known = {id(each) for _, each, _ in self._watched}
        for index, layer in enumerate(_layers_in(part)):
            if id(layer) not in known:
                if not layer.built:
                    self._watch([place, index], layer)
                self._watch_layers_in([place, index], layer)

    def _noting(self, place: Place, part: Any, build: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(build)  # Keras asks for its signature, and whether it is the default
        def noting(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return build(*args, **kwargs)
            self._inside += 1
            self._drawn.append(_generators())
            counts = {name: n for name, now in _names().items() if (n := now - self._counted.get(name, 0))}
            try:
                return build(*args, **kwargs)
            finally:
                self._inside -= 1
                self._drawn.append(_generators())
                kind = "compiled" if isinstance(part, _compiled_kinds()) else "layer"
                self._layers.append([kind, place, getattr(part, "_parent_path", None), counts, [args, kwargs]])
                self._watch_layers_in(place, part)

        return noting

    def _optimizers(self, walker: Walker) -> Builds:
        from keras.src.optimizers.base_optimizer import BaseOptimizer

        places: dict[int, Any] = {id(variable): number for number, variable in enumerate(walker.variables)}
        for _, place, *_ in self._layers:
            for index, variable in enumerate(_part(walker, place).variables):
                places.setdefault(id(variable), [place, index])
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
    """Build layers, loss, metrics and optimizers as a step of an earlier run did."""
    counted = dict(_names())
    for kind, place, *rest in builds:
        part = _part(walker, place)
        if part.built:  # one may build another
            continue
        if kind == "layer":
            parent, counts, arguments = rest
            _count_on(counted, counts)
            if getattr(part, "_parent_path", None) is None:
                part._parent_path = parent
            args, kwargs = decoded(arguments)
            part.build(*args, **kwargs)
        elif kind == "compiled":
            _, counts, arguments = rest
            _count_on(counted, counts)
            args, kwargs = decoded(arguments)
            build_by_use(part, *args, **kwargs)
        else:
            (variables,) = rest
            build_optimizer(part, [_variable(walker, place) for place in variables])


def _part(walker: Walker, place: Place) -> Any:
    if isinstance(place, list):
        outer, index = place
        return _layers_in(_part(walker, outer))[index]
    return walker.parts[place]


def _layers_in(part: Any) -> list[Any]:
    from keras.src.layers.layer import Layer

    return list(part._flatten_layers(include_self=False, recursive=False)) if isinstance(part, Layer) else []


def _variable(walker: Walker, place: Any) -> Any:
    if isinstance(place, list):
        part, index = place
        return _part(walker, part).variables[index]
    return walker.variables[place]


def encoded(value: Any) -> Any:
    """Return shapes, tensors as theirs, and what holds them, so that JSON keeps their types; raise `NoKeyError` for
    anything else.
    """
    import tensorflow as tf

    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) in (list, tuple):
        return [type(value).__name__, *map(encoded, value)]
    if type(value) is dict and all(type(key) is str for key in value):
        return ["dict", *([key, encoded(each)] for key, each in value.items())]
    if isinstance(value, tf.Tensor) and value.shape.rank is not None:
        return ["tensor", list(value.shape), value.dtype.name]
    raise NoKeyError(f"it builds a part of the model with a {type(value).__name__}")


def decoded(value: Any) -> Any:
    """Return what `encoded` was given, with Keras' symbolic tensors in place of tensors."""
    from keras.src import backend

    if not isinstance(value, list):
        return value
    kind, *items = value
    if kind == "dict":
        return {key: decoded(each) for key, each in items}
    if kind == "tensor":
        shape, dtype = items
        return backend.KerasTensor(tuple(shape), dtype, name="data")
    return (list if kind == "list" else tuple)(map(decoded, items))


def _compiled_kinds() -> tuple[type[Any], ...]:
    """Return the classes of what `compile` makes of losses and metrics."""
    from keras.src.trainers.compile_utils import CompileLoss, CompileMetrics

    return CompileLoss, CompileMetrics


def _names() -> Any:
    """Return how far Keras has counted for each automatic name."""
    from keras.src.backend.common import global_state

    return global_state.get_global_attribute("object_name_uids", defaultdict(int), set_to_default=True)


def _count_on(before: dict[str, int], counts: dict[str, int]) -> None:
    """Let Keras have counted as many names since `before` as it had when a part was built in a trace."""
    names = _names()
    for name, count in counts.items():
        names[name] = max(names[name], before.get(name, 0) + count)


def _generators() -> tuple[Any, Any]:
    """Return something that differs when a number was drawn from a global generator."""
    state: Any = np.random.get_state(legacy=True)
    name, keys, *rest = state
    return random.getstate(), (name, keys.tobytes(), *rest)
