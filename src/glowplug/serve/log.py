"""The server's log: one JSON object a line on stderr, or plain text where a person reads along."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from .log_writer import LineWriter, write

_MAX_CHARACTERS = 200  # of a name that a client chose

OnError = Callable[[str, Mapping[str, Any]], None]


class Log:
    """Writes events. `access` turns on one line for each request; `access_json` does too, and has them as JSON.

    `threaded` is for a process that has one loop for everything: there a thread writes, and nobody waits for it.
    """

    def __init__(
        self,
        *,
        as_json: bool,
        access: bool,
        access_json: bool = False,
        stream: TextIO | None = None,
        threaded: bool = False,
    ) -> None:
        self.access = access or access_json
        self.on_error: OnError | None = None  # told of events with an error
        self._json, self._access_json = as_json, access_json
        self._stream = stream or sys.stderr
        self._writer = LineWriter(self._stream, self._dropped) if threaded else None

    def event(self, name: str, **values: Any) -> None:
        """Write one event."""
        self._put(self._line(name, values, as_json=self._json))
        if "error" in values and self.on_error is not None:
            self.on_error(name, values)

    def request(self, protocol: str, method: str, code: str, seconds: float, request_id: str, **values: Any) -> None:
        """Write the line of one request, where the access log is on. Nothing of its headers or its body is in it."""
        if self.access:
            about = {"protocol": protocol, "method": method, "code": code, "ms": round(seconds * 1000, 3)}
            about |= {"id": request_id, **values}
            bounded = {
                key: value[:_MAX_CHARACTERS] if isinstance(value, str) else value
                for key, value in about.items()
                if value != "" or key == "model"
            }
            self._put(self._line("request", bounded, as_json=self._json or self._access_json))

    def flush(self, seconds: float) -> None:
        """Wait until all is written, for at most so long."""
        if self._writer is not None:
            self._writer.flush(seconds)

    @staticmethod
    def _line(name: str, values: Mapping[str, Any], *, as_json: bool) -> str:
        if as_json:
            return json.dumps({"time": round(time.time(), 6), "event": name, **values}, default=str)
        text = " ".join(f"{key}={_short(value)}" for key, value in values.items())
        return f"{time.strftime('%H:%M:%S')} {name} {text}".rstrip()

    def _dropped(self, lines: int) -> str:
        return self._line("log_lines_dropped", {"lines": lines}, as_json=self._json or self._access_json)

    def _put(self, line: str) -> None:
        if self._writer is not None:
            self._writer.write(line)
        else:
            write(self._stream, line)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) and value.isprintable() else json.dumps(value, default=str)  # one line
    return text if len(text) <= 200 else f"{text[:197]}..."
