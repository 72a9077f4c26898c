"""Makes the import of TensorFlow and Keras faster in a program that knows nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType

from . import annotations, signatures
from .watch import Watcher
from .window import Undo, Window, pause_collector

_ROOTS = ("tensorflow", "keras")
_PATCHES: dict[str, Callable[[ModuleType], Callable[[], Undo]]] = {
    "tensorflow.python.util.tf_decorator": signatures.in_decorators,
    "tensorflow.python.util.tf_inspect": signatures.in_inspection,
}


def install(watcher: Watcher) -> None:
    """Switch the acceleration on: nothing happens until the program imports TensorFlow or Keras."""
    window = Window((pause_collector, annotations.share_references))

    def began(spec: ModuleSpec) -> None:
        window.enter()

    def ended(module: ModuleType | None) -> None:
        window.leave()

    for name in _ROOTS:
        watcher.watch(name, before=began, after=ended)
    for name, patch in _PATCHES.items():
        watcher.watch(name, after=_when_loaded(window, patch))


def _when_loaded(
    window: Window, patch: Callable[[ModuleType], Callable[[], Undo]]
) -> Callable[[ModuleType | None], None]:
    def loaded(module: ModuleType | None) -> None:
        if module is not None:
            window.add(patch(module))

    return loaded
