"""The names of a module or class as a survey found them, kept so that a later one can tell what has changed."""

from __future__ import annotations

import operator
import zlib
from collections.abc import Mapping
from typing import Any

from .objects import plain_text

# Where something was found: a text, or what holds it, how (`.` or `[`), and the name or key there. Hardly any is shown.
Place = str | tuple[Any, str, Any]


def place_text(place: Place) -> str:
    """Return how a place is written."""
    if isinstance(place, str):
        return place
    holder, mark, name = place
    return f"{place_text(holder)}.{name}" if mark == "." else f"{place_text(holder)}[{plain_text(name)}]"


class Space:
    """What was found is kept, so that nothing takes its place in memory.

    `digest` stands for all names but those in `apart`, which count one by one.
    """

    __slots__ = (
        "_contents",
        "_watched",
        "apart",
        "digest",
        "keys",
        "module",
        "names",
        "owner",
        "registered",
        "replaced",
        "values",
    )

    def __init__(self, module: str, owner: Any, names: Mapping[str, Any]) -> None:
        """`owner` is the class; None for a module."""
        self.module = module
        self.owner = owner
        self.names = names
        self.keys: list[str] = []
        self.values: list[Any] = []
        self.digest = 0
        self.apart: dict[str, str] | None = None
        self.replaced: dict[str, Any] | None = None
        self.registered: dict[str, Any] | None = None
        # Few large lists and not one for each container: Python's collector has less to go through.
        self._watched: list[Any] | None = None
        self._contents: list[Any] = []

    def watch(self, container: Any) -> None:
        """Notice later whether a container holds something else."""
        if self._watched is None:
            self._watched = []
        self._watched.append(container)
        _add_contents(self._contents, container)

    def has_changed(self) -> bool:
        """Whether other names, other values or other items in what is watched stand there by now."""
        names = self.names
        if (
            len(names) != len(self.keys)
            or self.keys != list(names)
            or not all(map(operator.is_, self.values, names.values()))
        ):
            return True
        if self._watched is None:
            return False
        found: list[Any] = []
        for each in self._watched:
            _add_contents(found, each)
        return len(found) != len(self._contents) or not all(map(operator.is_, self._contents, found))

    def is_abstract(self) -> bool:
        """Whether subclasses may be registered with it."""
        return "_abc_impl" in self.names

    def replace(self, place: Place, value: Any) -> None:
        """Remember what stands there and is not stock."""
        if self.replaced is None:
            self.replaced = {}
        self.replaced[place_text(place)] = value

    def register(self, place: str, value: Any) -> None:
        """Remember something of the program's that was put there."""
        if self.registered is None:
            self.registered = {}
        self.registered[place] = value

    def settle(self, texts: list[str], apart: dict[str, str] | None = None) -> None:
        """Take what was read."""
        self.digest = digest_of(texts)
        self.apart = apart or None


def digest_of(texts: list[str]) -> int:
    """Return a digest of texts, in whatever order they come."""
    texts.sort()
    return zlib.crc32("\n".join(texts).encode("utf-8", "surrogatepass"))


def _add_contents(found: list[Any], container: Any) -> None:
    found.append(container)  # between two of them: an item that moves from one to the next has moved
    found.extend(container)
    if isinstance(container, dict):
        found.extend(container.values())
