"""What a weights file holds, before any of it is read: named entries, and which variable each is for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored tensor. `fetch` returns its value as a TensorFlow tensor; it may be called from any thread, once."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    fetch: Callable[[], Any]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Binding:
    """A variable of the model, and the entry that is for it if the file has one."""

    variable: Any
    entry: Entry | None
    required: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """Every binding of a load, and the names of the entries that no variable asked for."""

    bindings: tuple[Binding, ...]
    extra: tuple[str, ...] = ()
