"""A server on the loopback interface that answers each request after 20 ms, as a distant one would."""

import contextlib
import http.server
import threading
import time

LATENCY_S = 0.02
DATA = bytes(8 << 20)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(LATENCY_S)
        wanted = self.headers.get("Range", f"bytes=0-{len(DATA) - 1}").removeprefix("bytes=")
        first, last = (int(number) for number in wanted.split("-"))
        body = DATA[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def storage():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/weights"
    server.shutdown()
