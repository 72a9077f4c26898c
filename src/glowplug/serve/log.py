"""The server's log: one JSON object a line on stderr, or plain text where a person reads along."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, TextIO


class Log:
    """Writes events. `access` turns on one line for each request."""

    def __init__(self, *, as_json: bool, access: bool, stream: TextIO | None = None) -> None:
        self.access = access
        self._json = as_json
        self._stream = stream or sys.stderr

    def event(self, name: str, **values: Any) -> None:
        """Write one event."""
        if self._json:
            document = {"time": round(time.time(), 6), "event": name, **values}
            self._write(json.dumps(document, default=str))
            return
        text = " ".join(f"{key}={_short(value)}" for key, value in values.items())
        self._write(f"{time.strftime('%H:%M:%S')} {name} {text}".rstrip())

    def request(self, protocol: str, method: str, code: str, seconds: float, request_id: str, **values: Any) -> None:
        """Write the line of one request, where the access log is on."""
        if self.access:
            self.event(
                "request",
                protocol=protocol,
                method=method,
                code=code,
                ms=round(seconds * 1000, 3),
                id=request_id,
                **values,
            )

    def _write(self, line: str) -> None:
        try:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        except (OSError, ValueError):  # nobody reads any more; serving goes on
            return


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 200 else f"{text[:197]}..."
