"""The last errors, for people who look: those of requests, and those of the server itself.

Two rings, so that a client that does everything wrong cannot push out why a version failed. An error that comes again
is counted, not kept again. Texts are cut; nothing of a request's headers is in them.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

KEPT = 32
_MAX_TEXT, _MAX_NAME = 300, 100

_Key = tuple[str, str, str, str]


@dataclass(slots=True)
class Entry:
    """An error: when it was seen last, what happened to which model, and how often. Requests have a code."""

    at: float  # seconds since the epoch
    what: str
    model: str
    version: str
    code: str
    text: str
    count: int = 1


class Trouble:
    """Keeps the last errors. Any thread may tell of one."""

    def __init__(self) -> None:
        self._rings: tuple[OrderedDict[_Key, Entry], OrderedDict[_Key, Entry]] = (OrderedDict(), OrderedDict())
        self._lock = threading.Lock()

    def request(self, protocol: str, method: str, model: str, code: str, text: str) -> None:
        """Learn of a request that failed."""
        self._keep(0, Entry(time.time(), f"{protocol} {method[:_MAX_NAME]}", model[:_MAX_NAME], "", code, text))

    def event(self, name: str, values: Mapping[str, Any]) -> None:
        """Learn of an event of the log that has an error."""
        model, version = str(values.get("model", ""))[:_MAX_NAME], str(values.get("version", ""))
        self._keep(1, Entry(time.time(), name, model, version, "", str(values["error"])))

    def newest(self) -> list[dict[str, Any]]:
        """Return the entries of both rings, the newest first."""
        with self._lock:
            entries = [asdict(entry) for ring in self._rings for entry in ring.values()]
        return sorted(entries, key=lambda entry: -float(entry["at"]))

    def _keep(self, place: int, entry: Entry) -> None:
        entry.what, entry.model, entry.text = _clean(entry.what), _clean(entry.model), _clean(entry.text)
        key = entry.what, f"{entry.model} {entry.version}", entry.code, entry.text
        ring = self._rings[place]
        with self._lock:
            known = ring.pop(key, None)
            if known is not None:
                entry.count += known.count
            ring[key] = entry
            if len(ring) > KEPT:
                ring.popitem(last=False)


def _clean(text: str) -> str:
    """Return a text that is not long and can be written as UTF-8."""
    return text[:_MAX_TEXT].encode(errors="replace").decode()
