"""The state between `enable()` and `disable()`: where traces are kept, what happened, and what was said about
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .fingerprint.environment import environment_values
from .fingerprint.stock.files import stock_stamps
from .fingerprint.walker import Walker
from .notes import Notes
from .optimised.graphs import OptimisedGraphs
from .trace.cached import Subject
from .trace.entries import Entries
from .trace.entry import Entry
from .trace.entry_store import EntryStore
from .trace.key import ANY_SEED, Key, from_texts, joined

if TYPE_CHECKING:
    from .travel.elsewhere import RemoteCache
    from .travel.remote import RemoteTraces

_SHOWN_CHANGES = 3


class Caching:
    """One period in which traces are cached.

    `counts` has `restored`, `traced`, `refused`, `stored`, `optimised`, and `fetched` from elsewhere.
    """

    def __init__(
        self,
        store: EntryStore,
        *,
        verify: bool,
        max_bytes: int,
        notes: Notes,
        remote: RemoteTraces | None = None,
        read_only: bool = False,
    ) -> None:
        self.active = True
        self.verify = verify
        self.notes = notes
        self.counts: Counter[str] = Counter()
        self._elsewhere = None if remote is None else _elsewhere(remote, notes, self.counts, read_only=read_only)
        self.entries = Entries(store, notes, max_bytes, self._elsewhere)
        self.optimised = OptimisedGraphs(self.entries, notes, self.counts)
        self._used: set[str] = set()

    def finish(self) -> None:
        """Wait, for a while, until what goes elsewhere is there."""
        if self._elsewhere is not None:
            self._elsewhere.finish()

    def find(self, walker: Walker) -> tuple[Key, Entry | None]:
        """Return the key of what was walked, and the trace that is stored for it, if one is."""
        base = _base_key(walker)
        seeded = base.plus("seed", _global_seed())
        free = base.plus("seed", ANY_SEED)
        for key in (free, seeded):
            entry = self.entries.find(key)
            if entry is not None and self._is_of_this_stock(walker, entry):
                self._used.add(key.digest)
                return key, entry
        return seeded, None

    def _is_of_this_stock(self, walker: Walker, entry: Entry) -> bool:
        """Whether the stock modules that are loaded are as they were when a trace was made."""
        changed = walker.survey.differing(entry.blobs["stock"])
        if changed:  # told, not warned: the first start that `run` has learned for imports TensorFlow in another way
            self.notes.tell(f"a stored trace is made anew, because {', '.join(changed[:_SHOWN_CHANGES])} has changed")
        return not changed

    def keep(
        self,
        subject: Subject,
        key: Key,
        plan: Mapping[str, Any],
        blobs: Mapping[str, bytes],
        *,
        seeded: bool,
        reason: list[str],
    ) -> None:
        """Store a trace; the global seed is part of its key only if random operations took theirs from it.

        What the trace loaded on its way must be what its key stands for.
        """
        stock_stamps()
        if not seeded:
            key = key.plus("seed", ANY_SEED)
        info = {
            "function": subject.kind,
            "label": subject.label,
            "inputs": [f"{dtype}{shape}" for dtype, shape in plan["inputs"]],
            "nodes": plan["nodes"],
            "captures": len(plan["captures"]),
            "because": reason,
        }
        self.entries.keep(key, info, plan, blobs)
        self._used.add(key.digest)
        self.counts["stored"] += 1

    def find_builds(self, walker: Walker) -> list[list[Any]] | None:
        """Return what a step is known to build that is as it was walked, or None."""
        entry = self.entries.find(_builds_key(walker))
        return None if entry is None else list(entry.plan["builds"])

    def keep_builds(self, subject: Subject, walker: Walker, builds: list[list[Any]]) -> None:
        """Keep what a step built that was as it was walked."""
        info = {
            "function": f"what {subject.kind} builds",
            "label": subject.label,
            "inputs": [],
            "nodes": 0,
            "captures": 0,
            "because": [],
        }
        self.entries.keep(_builds_key(walker), info, {"builds": builds}, {})

    def missed(self, subject: Subject, key: Key) -> list[str]:
        """Explain why nothing was found, aloud if a trace of an earlier run came near; return the
        explanation.
        """
        nearest, differences = self.entries.why_not(key, subject.kind, subject.label)
        found = [str(change) for change in differences]
        if found and nearest not in self._used:
            shown = "; ".join(found[:_SHOWN_CHANGES])
            more = f"; and {len(found) - _SHOWN_CHANGES} more" if len(found) > _SHOWN_CHANGES else ""
            self.notes.warn(f"{subject.label} is traced again, because the key changed: {shown}{more}")
        return found[:50]

    def restored(self, subject: Subject) -> None:
        """A stored trace is in use."""
        self.counts["restored"] += 1
        self.notes.tell(f"{subject.label}: restored")

    def traced(self, subject: Subject) -> None:
        """A function was traced."""
        self.counts["traced"] += 1
        self.notes.tell(f"{subject.label}: traced")

    def refused(self, subject: Subject, reason: str) -> None:
        """A function cannot be cached."""
        self.counts["refused"] += 1
        self.notes.warn(f"{subject.label} is traced as usual: {reason}")

    def failed(self, label: str, error: Exception) -> None:
        """Something of ours went wrong before a function ran: it runs as stock from now on."""
        self.notes.warn(f"{label} runs as in stock TensorFlow: {type(error).__name__}: {_first_line(error)}")

    def did_not_fit(self, subject: Subject, key: Key, reason: str) -> None:
        """A stored trace could not be used after all."""
        self.notes.warn(f"a stored trace of {subject.label} did not fit and was removed: {reason}")
        self.entries.forget(key)

    def verified(self, subject: Subject, key: Key, same: bool) -> None:
        """A stored trace was compared with a fresh one."""
        self.counts["verified" if same else "different"] += 1
        if same:
            self.notes.tell(f"{subject.label}: the stored trace equals a fresh one")
        else:
            self.notes.warn(f"the stored trace of {subject.label} differs from a fresh one and was removed")
            self.entries.forget(key)


def _elsewhere(remote: RemoteTraces, notes: Notes, counts: Counter[str], *, read_only: bool) -> RemoteCache:
    from .travel.elsewhere import RemoteCache

    return RemoteCache(remote, notes, counts, read_only=read_only)


def _base_key(walker: Walker) -> Key:
    return joined(from_texts(environment_values()), Key(walker.stream.components(), walker.stream.leaves()))


def _builds_key(walker: Walker) -> Key:
    return (
        _base_key(walker).plus("seed", ANY_SEED).plus("kept", "layers and optimizers that it builds, and their names")
    )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "")[:200]


def _global_seed() -> str:
    from tensorflow.python.eager import context

    return str(context.global_seed())
