"""A digest over a stream of tagged, length-prefixed tokens, in named components, with a readable trail of its
leaves.

The trail is what explains a miss: two keys that differ in a component differ in at least one of its leaves.
"""

from __future__ import annotations

import hashlib

_SHOWN_CHARACTERS = 90


class TokenStream:
    """Collects tokens into the component that is current and remembers the leaves by path."""

    def __init__(self) -> None:
        self._digests: dict[str, hashlib._Hash] = {}
        self._leaves: dict[str, dict[str, str]] = {}
        self.current = ""
        self.enter("model")

    def enter(self, component: str) -> str:
        """Make `component` the current one and return the one that was."""
        previous = self.current or component
        if component not in self._digests:
            self._digests[component] = hashlib.sha256()
            self._leaves[component] = {}
        self.current = component
        self._digest = self._digests[component]
        self._trail = self._leaves[component]
        return previous

    def emit(self, tag: str, payload: bytes = b"") -> None:
        """Add one token."""
        self._digest.update(b"%s\0%d\0%s" % (tag.encode(), len(payload), payload))

    def leaf(self, path: str, tag: str, text: str) -> None:
        """Add one token whose value a person can read, and remember it under `path`."""
        payload = text.encode("utf-8", "surrogatepass")
        self._digest.update(b"%s\0%d\0%s" % (tag.encode(), len(payload), payload))
        if len(text) > _SHOWN_CHARACTERS:
            text = f"{text[: _SHOWN_CHARACTERS - 9]}…{hashlib.sha256(payload).hexdigest()[:8]}"
        self._trail[path] = text

    def digest_leaf(self, path: str, tag: str, payload: bytes, shown: str) -> None:
        """Add a token of bytes, remembered as `shown` and the start of its digest."""
        whole = hashlib.sha256(payload).digest()
        self.emit(tag, whole)
        self._trail[path] = f"{shown} {whole.hex()[:8]}"

    def components(self) -> dict[str, str]:
        """Return the hexadecimal digest of each component."""
        return {name: digest.hexdigest() for name, digest in self._digests.items()}

    def leaves(self) -> dict[str, dict[str, str]]:
        """Return, for each component, what was seen at each path."""
        return self._leaves
