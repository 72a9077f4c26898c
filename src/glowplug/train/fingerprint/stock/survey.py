"""Looks through the stock packages that are loaded, for what a program has changed in them.

Nothing leads from a model to `keras.src.backend.tensorflow.nn.relu`, yet whoever replaces it changes what a step
computes. So every module of Keras, TensorFlow and numpy is looked through, with all of its classes, and so are the
modules of the standard library that a step may use, and `builtins`:

- code that is not stock, wherever it stands, is *replaced*: it is hashed by value as a part of every key;
- functions and classes of the program's own in a dictionary or list of theirs are *registered*: hashed as well;
- each module gets a digest of the rest: its functions and those of its classes by their code, defaults, wrapped
  functions and closures, its plain values, and where everything else comes from. An entry holds the digests from before
  its trace, and is restored only where the modules that are loaded have the same.

A second survey of a process, or of one that was forked from it, reads only what has changed since the first.
"""

from __future__ import annotations

import contextlib
import json
import threading
import types
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from glowplug.train.collector import collector_paused
from glowplug.train.fingerprint.errors import NoKeyError

from .surveyor import Surveyor

_PATIENCE_S = 30


@dataclass(frozen=True, slots=True)
class Survey:
    """`modules` are digests by name; `apart` are, by module, names that may be there or not, and what they stand for.

    `replaced` and `registered` are `(place, value)` in a fixed order. `generated` is stock code that no file holds,
    such as the methods of named tuples.
    """

    modules: Mapping[str, int]
    apart: Mapping[str, Mapping[str, str]]
    replaced: tuple[tuple[str, Any], ...]
    registered: tuple[tuple[str, Any], ...]
    generated: frozenset[types.CodeType]

    def encoded(self, later: Survey) -> bytes:
        """Return the digests as an entry keeps them, with those of modules and names that only a later survey saw."""
        apart = {
            module: {**_digests(later.apart.get(module, {})), **_digests(self.apart.get(module, {}))}
            for module in {**later.apart, **self.apart}
        }
        whole = {module: _whole(names) for module, names in apart.items()}
        text = json.dumps({"modules": {**later.modules, **self.modules}, "apart": whole, "names": json.dumps(apart)})
        return zlib.compress(text.encode(), 1)

    def changed_since(self, later: Survey) -> list[str]:
        """Return the modules, and the names apart, that are not in a later survey what they were."""
        found = [name for name, digest in self.modules.items() if later.modules.get(name, digest) != digest]
        for module, names in self.apart.items():
            now = later.apart.get(module, names)
            found += [f"{module}.{name}" for name, text in names.items() if now.get(name, text) != text]
        return sorted(found)

    def differing(self, encoded: bytes) -> list[str]:
        """Return the modules, and the names apart, that both know and that are not as they were for an entry."""
        other = json.loads(zlib.decompress(encoded))
        modules, whole = other["modules"], other["apart"]
        found = [name for name, digest in self.modules.items() if modules.get(name, digest) != digest]
        mine = {module: _digests(names) for module, names in self.apart.items()}
        unlike = [module for module, names in mine.items() if module in whole and _whole(names) != whole[module]]
        if unlike:  # some name of theirs is new, is gone, or stands for something else
            theirs = json.loads(other["names"])
            for module in unlike:
                known = theirs[module]
                found += [
                    f"{module}.{name}" for name, digest in mine[module].items() if known.get(name, digest) != digest
                ]
        return sorted(found)


def survey() -> Survey:
    """Look through all stock modules that are loaded; what has not changed since the last time is not read again."""
    with _alone(), collector_paused():
        latest = _Latest.surveyor
        if latest is None or latest.has_changed_functions():
            latest, _Latest.result = Surveyor(), None
        _Latest.surveyor = None  # what is read in part is never used
        if latest.read_changes() or _Latest.result is None:
            _Latest.result = _result(latest)
        _Latest.surveyor = latest
        return _Latest.result


def _result(surveyor: Surveyor) -> Survey:
    replaced, registered = surveyor.not_stock()
    return Survey(
        surveyor.digests(),
        surveyor.apart(),
        tuple(sorted(replaced.items())),
        tuple(sorted(registered.items())),
        surveyor.generated(),
    )


def _digests(names: Mapping[str, str]) -> dict[str, int]:
    return {name: zlib.crc32(text.encode("utf-8", "surrogatepass")) for name, text in names.items()}


def _whole(digests: Mapping[str, int]) -> int:
    return zlib.crc32(repr(sorted(digests.items())).encode("utf-8", "surrogatepass"))


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Let one thread look at a time. A process that was forked while another thread looked finds the lock taken."""
    if not _Latest.lock.acquire(timeout=_PATIENCE_S):
        raise NoKeyError("another thread has been looking through stock code for too long")
    try:
        yield
    finally:
        _Latest.lock.release()


class _Latest:
    """The last survey of this process, and what it looked at."""

    lock = threading.Lock()
    surveyor: Surveyor | None = None
    result: Survey | None = None
