"""Header fields of a request: what one means that comes several times, and what a client says about encodings."""

from __future__ import annotations

import re

# A second one of these is a mistake or an attempt to have a proxy and this server read two different requests.
_SINGLE = frozenset(
    {b"host", b"authorization", b"content-length", b"content-type", b"expect", b"inference-header-content-length"}
)
_MAX_JOINED_BYTES = 1 << 13  # each time it comes, what came before is copied
_GZIP = frozenset({b"gzip", b"x-gzip"})  # RFC 9110, 8.4.1.3: the same
_NO_WEIGHT = re.compile(rb"\s*q\s*=\s*0(?:\.0*)?\s*")

Fields = dict[bytes, bytes]


class TwiceError(Exception):
    """A field came twice that may come once, or very often."""

    def __init__(self, text: str, status: int) -> None:
        self.status = status
        super().__init__(text)


def add_field(fields: Fields, name: bytes, value: bytes) -> None:
    """Add a field; one that comes several times is a list (RFC 9110, 5.3)."""
    name = name.lower()
    known = fields.get(name)
    if known is None:
        fields[name] = value
    elif name in _SINGLE:
        raise TwiceError(f"the field {name.decode('latin-1')} must not come twice", 400)
    elif len(known) > _MAX_JOINED_BYTES:
        raise TwiceError("the headers are too large", 431)
    else:
        fields[name] = b"%s, %s" % (known, value)


def body_coding(fields: Fields) -> str:
    """Return how the body is packed: `gzip`, the name of something else, or nothing."""
    coding = fields.get(b"content-encoding", b"").strip().lower()
    if coding in (b"", b"identity"):
        return ""
    return "gzip" if coding in _GZIP else coding.decode("latin-1")


def accepts_gzip(fields: Fields) -> bool:
    """Say whether an answer may be packed."""
    for choice in fields.get(b"accept-encoding", b"").lower().split(b","):
        name, _, weight = choice.partition(b";")
        if name.strip() in _GZIP:
            return not _NO_WEIGHT.fullmatch(weight)
    return False
