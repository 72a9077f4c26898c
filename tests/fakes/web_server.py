"""A web server in this process that keeps objects in memory and fails on demand. It knows ranges, or does not."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class WebServer:
    """`faults` are answers to give to the next requests instead: a status and headers. `requests` are those it got."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.faults: list[tuple[int, dict[str, str]]] = []
        self.requests: list[tuple[str, str]] = []
        self.sent: list[tuple[str, int]] = []  # bytes of objects, by path
        self.knows_ranges = True
        self.url = ""


@contextlib.contextmanager
def serving() -> Iterator[WebServer]:
    """A server for the length of a block."""
    web = WebServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_PUT(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if not self._fails():
                web.objects[self.path] = data
                self._send(201, {}, b"", body=True)

        def do_DELETE(self) -> None:
            if not self._fails():
                self._send(204 if web.objects.pop(self.path, None) is not None else 404, {}, b"", body=True)

        def _answer(self, *, body: bool) -> None:
            if self._fails():
                return
            data = web.objects.get(self.path)
            if data is None:
                self._send(404, {}, b"", body=body)
                return
            headers = {"ETag": f'"{hash(data):x}"'}
            asked = self.headers.get("Range")
            if asked and web.knows_ranges:
                first, last = asked.removeprefix("bytes=").split("-")
                piece = data[int(first) : int(last) + 1]
                if not piece:
                    self._send(416, {}, b"", body=body)
                    return
                headers["Content-Range"] = f"bytes {first}-{int(first) + len(piece) - 1}/{len(data)}"
                self._send(206, headers, piece, body=body)
                return
            self._send(200, headers, data, body=body)

        def _fails(self) -> bool:
            web.requests.append((self.command, self.path))
            if not web.faults:
                return False
            status, headers = web.faults.pop(0)
            if status == 0:
                self.close_connection = True  # without an answer
            else:
                self._send(status, headers, b"", body=True)
            return True

        def _send(self, status: int, headers: dict[str, str], data: bytes, *, body: bool) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(data)
                web.sent.append((self.path, len(data)))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
