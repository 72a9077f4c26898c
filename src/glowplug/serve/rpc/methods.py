"""What a call is for: methods by path, and the head of a call, read once for calls that begin alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glowplug.core.errors import RequestError
from glowplug.serve.access import Scope

from .http2.headers import Fields
from .wire import GZIP, IDENTITY, is_known, read_timeout

if TYPE_CHECKING:
    from .call import Call

_CONTENT_TYPE = b"application/grpc"
_UNSUPPORTED_MEDIA_TYPE, _METHOD_NOT_ALLOWED = 415, 405
UNKNOWN_LENGTH = -1

Unary = Callable[[bytes, "Call"], Awaitable[bytes]]
Streaming = Callable[["Call"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Method:
    """A method: from a message to its answer, or with the call itself to read from and to write to.

    `scope` is what a token has to be good for, where tokens are asked for.
    """

    unary: Unary | None = None
    streaming: Streaming | None = None
    scope: Scope = "status"


Methods = Mapping[str, Method]
_NOTHING = Method()


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a call. `http_status` (not 0) and `error` are reasons to refuse it."""

    method: Method
    path: str
    timeout_s: float | None
    encoding: bytes
    accepts_gzip: bool
    length: int  # of the body, where the client says it
    metadata: tuple[tuple[bytes, bytes], ...]
    http_status: int = 0
    error: RequestError | None = None


def read_head(methods: Methods, fields: Fields) -> Head:
    """Return the head of a call from the fields of a well-formed request."""
    found = dict(fields)
    path = found[b":path"].decode("utf-8", "replace")
    method = methods.get(path)
    encoding = found.get(b"grpc-encoding", IDENTITY)
    timeout = found.get(b"grpc-timeout")
    timeout_s = None if timeout is None else read_timeout(timeout)
    error = None
    if method is None:
        error = RequestError("unknown method", seen=path[:200], code="UNIMPLEMENTED")
    elif not is_known(encoding):
        seen = encoding.decode("utf-8", "replace")[:100]
        error = RequestError("this compression is not supported", seen=seen, code="UNIMPLEMENTED")
    elif timeout is not None and timeout_s is None:
        error = RequestError("grpc-timeout is not one", seen=repr(timeout[:40]), code="INTERNAL")
    length = found.get(b"content-length", b"")
    return Head(
        method or _NOTHING,
        path,
        timeout_s,
        encoding,
        GZIP in found.get(b"grpc-accept-encoding", b""),
        int(length) if length.isdigit() and len(length) < 20 else UNKNOWN_LENGTH,
        tuple(field for field in fields if not field[0].startswith(b":")),
        _http_status(found),
        error,
    )


def _http_status(found: dict[bytes, bytes]) -> int:
    if found[b":method"] != b"POST":
        return _METHOD_NOT_ALLOWED
    kind = found.get(b"content-type", b"")
    if not kind.startswith(_CONTENT_TYPE) or kind[len(_CONTENT_TYPE) :][:1] not in (b"", b"+", b";"):
        return _UNSUPPORTED_MEDIA_TYPE
    return 0
