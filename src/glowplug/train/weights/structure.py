"""Where Keras' own files keep the variables of a model: a place in its structure, without automatic names.

Keras walks the attributes of a model when it saves. The same walk here finds, for each place of the file, the
variable that belongs there, and reads no value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras
from keras.src.saving import saving_lib
from keras.src.saving.keras_saveable import KerasSaveable
from keras.src.utils import naming

from glowplug.core.errors import UnsupportedModelError


@dataclass(frozen=True, slots=True)
class Place:
    """The dataset at `path` of a `.weights.h5` file is for `variable`."""

    path: str
    variable: Any


def places(model: Any) -> tuple[tuple[Place, ...], tuple[str, ...]]:
    """Return the place of each variable of the model's layers, and the folders of its optimizers and metrics."""
    found = []
    others = []
    for path, one in _walk(model, "", set()):
        if isinstance(one, keras.Layer):
            found += _own_places(path, one)
        else:
            others.append(f"{path}/")
    return tuple(found), tuple(others)


def _own_places(path: str, layer: Any) -> list[Place]:
    own: dict[str, Any] = {}
    layer.save_own_variables(own)
    if not _is_plain(layer, own):
        raise UnsupportedModelError(
            "a layer has its own way to store or load its variables",
            seen=f"{layer.name} ({type(layer).__name__})",
            remedy="load this file with model.load_weights",
        )
    return [Place(f"{path}/vars/{key}".lstrip("/"), value) for key, value in own.items()]


def _is_plain(layer: Any, own: dict[str, Any]) -> bool:
    """Whether loading is one assignment for each stored variable. Code that is not Keras' own may do anything."""
    loader = type(layer).load_own_variables.__module__
    return not own or (loader.startswith("keras.src.") and all(isinstance(one, keras.Variable) for one in own.values()))


def _walk(saveable: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if id(saveable) in seen:
        return
    seen.add(id(saveable))
    if isinstance(saveable, (keras.Optimizer, keras.Metric)):
        yield path, saveable
        return
    if isinstance(saveable, keras.Layer):
        yield path, saveable
    for name, child in saving_lib._walk_saveable(saveable):
        inner = f"{path}/{name}".lstrip("/")
        if isinstance(child, KerasSaveable):
            yield from _walk(child, inner, seen)
        elif isinstance(child, (list, dict, tuple)):
            # Keras forgets which containers it has seen from one attribute to the next.
            yield from _walk_container(child, inner, seen, set())


def _walk_container(container: Any, path: str, seen: set[int], containers: set[int]) -> Iterator[tuple[str, Any]]:
    if id(container) in containers:
        return
    containers.add(id(container))
    taken: dict[str, int] = {}
    for child in list(container.values()) if isinstance(container, dict) else container:
        if isinstance(child, KerasSaveable):
            name = _unique(naming.to_snake_case(type(child).__name__), taken)
            yield from _walk(child, f"{path}/{name}", seen)
        elif isinstance(child, (list, dict, tuple)):
            yield from _walk_container(child, f"{path}/{_unique('container', taken)}", seen, containers)


def _unique(name: str, taken: dict[str, int]) -> str:
    count = taken.get(name, -1) + 1
    taken[name] = count
    return f"{name}_{count}" if count else name
