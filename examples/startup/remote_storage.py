"""A store on the loopback interface that answers each request after 20 ms, as a distant one would."""

import contextlib
import functools
import http.server
import threading
import time
from pathlib import Path

LATENCY_S = 0.02


class Handler(http.server.BaseHTTPRequestHandler):
    """Serve one file, whole or by range."""

    def __init__(self, data, *arguments):
        self.data = data
        super().__init__(*arguments)

    def do_HEAD(self):
        self.answer(b"", len(self.data))

    def do_GET(self):
        time.sleep(LATENCY_S)
        wanted = self.headers.get("Range", f"bytes=0-{len(self.data) - 1}").removeprefix("bytes=")
        first, last = (int(number) for number in wanted.split("-"))
        body = self.data[first : last + 1]
        self.answer(body, len(body))

    def answer(self, body, length):
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serve(path):
    handler = functools.partial(Handler, Path(path).read_bytes())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/network.keras"
    server.shutdown()
