"""The one place where a `TF_Status` is checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from glowplug.core.errors import TensorFlowError

from .library import Library

_CODES = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)


@contextmanager
def checked(library: Library, what: str) -> Iterator[int]:
    """Yield a new `TF_Status` for the calls of the block and raise `TensorFlowError` if it is not OK at the end."""
    status = library.api.TF_NewStatus()
    try:
        yield status
        number = library.api.TF_GetCode(status)
        if number:
            code = _CODES[number] if number < len(_CODES) else str(number)
            message = library.api.TF_Message(status).decode(errors="replace")
            raise TensorFlowError(what, seen=f"{code}: {message}", code=code)
    finally:
        library.api.TF_DeleteStatus(status)
