"""The terms on which traces come and go: a trace is code and needs a signature or a user's word."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from glowplug.core.disk.digest import sha256
from glowplug.core.errors import SignatureError
from glowplug.store import signature
from glowplug.store.signature import PrivateKey, Trust


@dataclass(frozen=True, slots=True)
class Terms:
    """Whose signatures count, whether traces without one are taken too, and the key that signs what goes out."""

    trust: Trust = field(default_factory=Trust)
    unsigned: bool = False
    key: PrivateKey | None = None

    def check(self, data: bytes, fetch: Callable[[str], bytes | None]) -> None:
        """Raise `SignatureError` unless a trace may be used; `fetch` returns a signature by its name, or None."""
        signer = self.trust.signer("trace", sha256(data), fetch)
        if signer is None and not self.unsigned:
            raise SignatureError(
                "a trace is code, and no trusted key has signed this one",
                seen=f"trusted: {', '.join(key.id for key in self.trust.keys) or 'none'}",
                remedy="trust the public key of who signed it, or pass trust=True (--no-signature) if you would run a "
                "script from there",
            )

    def signed(self, data: bytes) -> tuple[str, bytes] | None:
        """Return the name and the bytes of the signature that goes with a trace, if there is a key."""
        if self.key is None:
            return None
        digest = sha256(data)
        return signature.object_name(digest, self.key.public), self.key.sign("trace", digest)

    @property
    def identity(self) -> str:
        """What keeps traces apart that were taken on other terms."""
        keys = sorted(key.id for key in self.trust.keys)
        return hashlib.sha256(repr((keys, self.unsigned)).encode()).hexdigest()[:8]


def terms(
    *, trust: bool = False, keys: Iterable[str | Path] = (), sign: str | Path | None = None, required: bool = False
) -> Terms:
    """Return the terms that a caller names, with the keys of the environment where none are named."""
    trusted = signature.trust(keys, required=required)
    return Terms(trusted, trust and not trusted.required, None if sign is None else signature.read_private(Path(sign)))
