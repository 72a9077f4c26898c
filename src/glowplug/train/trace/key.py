"""The key of a trace: named components, so that a miss can say which of them changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

ANY_SEED = "any"  # the value of the component `seed` where no random operation took its seed from the global one


@dataclass(frozen=True, slots=True)
class Key:
    """`components` are digests by name; `leaves` are the readable values behind some of them, by path."""

    components: Mapping[str, str]
    leaves: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The name under which an entry with this key is kept."""
        whole = hashlib.sha256()
        for name in sorted(self.components):
            for part in (name, self.components[name]):
                payload = part.encode()
                whole.update(b"%d\0%s" % (len(payload), payload))
        return whole.hexdigest()

    def plus(self, name: str, value: str) -> Key:
        """Return this key with one more component, whose value is its own description."""
        return Key({**self.components, name: text_digest(value)}, {**self.leaves, name: {"": value}})


def text_digest(text: str) -> str:
    """Return the digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def from_texts(values: Mapping[str, Mapping[str, str]]) -> Key:
    """Return a key whose components are given as readable values by path."""
    components = {
        name: text_digest("\0".join(f"{len(path)} {path}{len(text)} {text}" for path, text in sorted(leaves.items())))
        for name, leaves in values.items()
    }
    return Key(components, values)


def joined(*keys: Key) -> Key:
    """Return one key with the components of all; a name that occurs twice is a mistake of the caller."""
    components: dict[str, str] = {}
    leaves: dict[str, Mapping[str, str]] = {}
    for key in keys:
        assert not components.keys() & key.components.keys()
        components.update(key.components)
        leaves.update(key.leaves)
    return Key(components, leaves)


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two keys. `before` and `after` are empty where a value appeared or went away."""

    component: str
    path: str
    before: str
    after: str

    def __str__(self) -> str:
        place = f"{self.component}: {self.path}" if self.path else self.component
        if not self.before and not self.after:
            return place
        return f"{place} {self.before or '(nothing)'} -> {self.after or '(nothing)'}"


def changes(before: Key, after: Key) -> list[Change]:
    """Return what differs, the values that a person can read first; a component is named even if none is
    known.
    """
    found: list[Change] = []
    unexplained: list[Change] = []
    for name in sorted(before.components.keys() | after.components.keys()):
        if before.components.get(name) == after.components.get(name):
            continue
        if name == "seed" and before.components.get(name) == text_digest(ANY_SEED):
            continue  # that trace does not depend on the seed
        old, new = before.leaves.get(name, {}), after.leaves.get(name, {})
        differing = [
            Change(name, path, old.get(path, ""), new.get(path, ""))
            for path in {**old, **new}
            if old.get(path) != new.get(path)
        ]
        found += differing
        if not differing:
            unexplained.append(Change(name, "", "", ""))
    # Numbers of objects shift when something earlier changes: a component without a differing value follows.
    return found or unexplained
