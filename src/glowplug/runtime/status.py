"""The one place where a `TF_Status` is checked."""

from __future__ import annotations

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


class checked:  # noqa: N801 - used like a function
    """A new `TF_Status` for the calls of a block; raises `TensorFlowError` if it is not OK at the end."""

    __slots__ = ("_api", "_status", "_what")

    def __init__(self, library: Library, what: str) -> None:
        self._api, self._what = library.api, what

    def __enter__(self) -> int:
        self._status = status = int(self._api.TF_NewStatus())
        return status

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None and (number := self._api.TF_GetCode(self._status)):
                code = _CODES[number] if number < len(_CODES) else str(number)
                message = self._api.TF_Message(self._status).decode(errors="replace")
                raise TensorFlowError(self._what, seen=f"{code}: {message}", code=code)
        finally:
            self._api.TF_DeleteStatus(self._status)
