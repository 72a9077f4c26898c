"""A server in a process of its own, on free ports, and small clients for it."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import grpc
import psutil

from glowplug.serve.wire.messages import serving
from glowplug.serve.wire.tensor_proto import encode


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """`glowplug serve ARGUMENTS`, ready to be asked when the block begins."""

    def __init__(self, *arguments: Any, wait: bool = True, environment: dict[str, str] | None = None) -> None:
        self.rest_port, self.grpc_port = free_port(), free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="glowplug-")
        self.control = f"unix:{self._folder.name}/control.sock"
        if "--control-socket" not in arguments:
            arguments = (*arguments, "--control-socket", self.control)
        ports = ["--rest-port", self.rest_port, "--grpc-port", self.grpc_port, "--log-json", "--json"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "glowplug", "serve", *map(str, [*arguments, *ports])],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
        self.events: list[dict[str, Any]] = []
        self.other_output = b""
        self._changed, self._ended = threading.Condition(), False
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        if wait:
            self.wait_ready()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        self._reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()
        self._folder.cleanup()

    def wait_ready(self, timeout: float = 60) -> dict[str, Any]:
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], timeout)
        line = self.process.stdout.readline() if readable else b""
        if not line:
            self.process.kill()
            self._reader.join()
            raise AssertionError(f"not ready: {self.events} {self.other_output.decode()}")
        return json.loads(line)

    def _read_log(self) -> None:
        """Run in a thread: a pipe that nobody reads would stop the server."""
        for line in self.process.stderr:
            with self._changed:
                if line.startswith(b"{"):
                    self.events.append(json.loads(line))
                else:
                    self.other_output += line
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_event(self, name: str, timeout: float = 120, **values: Any) -> dict[str, Any]:
        """Return the first event of that name, now or to come."""

        def find() -> dict[str, Any] | None:
            for event in self.events:
                if event["event"] == name and all(event.get(key) == value for key, value in values.items()):
                    return event
            return None

        with self._changed:
            self._changed.wait_for(lambda: find() or self._ended, timeout)
            found = find()
        assert found, f"no event {name!r} {values}: {self.events} {self.other_output!r}"
        return found

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.rest_port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read(), {k.lower(): v for k, v in response.getheaders()}
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, Any]:
        status, body, _ = self.request("GET", path)
        return status, json.loads(body)

    def post(self, path: str, document: Any) -> tuple[int, Any]:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        status, answer, _ = self.request("POST", path, body)
        return status, json.loads(answer)

    def call(self, method: str, request: Any, response: str, timeout: float = 30, address: str = "") -> Any:
        """Call a gRPC method by its full name."""
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        with grpc.insecure_channel(address or f"127.0.0.1:{self.grpc_port}", options=options) as channel:
            stub = channel.unary_unary(
                method,
                request_serializer=lambda message: (
                    message if isinstance(message, bytes) else message.SerializeToString()
                ),
                response_deserializer=serving(response).FromString,
            )
            return stub(request, timeout=timeout)

    def predict(self, model: str, inputs: dict[str, Any], **options: Any) -> Any:
        request = serving("PredictRequest")()
        request.model_spec.name = model
        for name, array in inputs.items():
            request.inputs[name].CopyFrom(encode(array, "string" if array.dtype == object else str(array.dtype)))
        return self.call("/tensorflow.serving.PredictionService/Predict", request, "PredictResponse", **options)

    def workers(self) -> list[psutil.Process]:
        """Return the worker processes: the children that map TensorFlow's library and are not the front end."""
        front = self.front_end()
        return [child for child in psutil.Process(self.process.pid).children() if child.pid != front.pid]

    def front_end(self) -> psutil.Process:
        for child in psutil.Process(self.process.pid).children():
            if any(one.laddr and one.laddr.port == self.rest_port for one in child.net_connections("tcp")):
                return child
        raise AssertionError("no front end")


def copy_version(source: Path, target: Path) -> None:
    """Make a version appear whole, as a deployment does."""
    import shutil

    hidden = target.parent / f".{target.name}"
    shutil.copytree(source, hidden)
    hidden.rename(target)
