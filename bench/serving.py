"""Servers under test: ours, and what people run instead (FastAPI with Keras or LiteRT, BentoML, Ray Serve).

Also what they are asked, and what memory they hold.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bundles
import machine
import models
import numpy as np
import psutil

CLIENT = Path(__file__).parent / "serve_client.py"
SCRIPTS = Path(__file__).parent / "scripts"


@dataclass
class Server:
    """A running server. `ready_s` is the time from its start until every worker had answered."""

    process: subprocess.Popen[bytes]
    rest: str
    grpc: str
    path: str
    ready_s: float
    log: Path | None = None
    restarts: list[int] = field(default_factory=list)

    def pss_bytes(self) -> int:
        return sum(process.memory_full_info().pss for process in self._processes())

    def private_bytes(self) -> int:
        """Return what no other process shares: unlike PSS, it does not move when somebody else maps the same files."""
        return sum(process.memory_full_info().uss for process in self._processes())

    def descriptors(self) -> int:
        return sum(process.num_fds() for process in self._processes())

    def _processes(self) -> list[psutil.Process]:
        supervisor = psutil.Process(self.process.pid)
        return [supervisor, *supervisor.children(recursive=True)]

    def workers(self) -> list[psutil.Process]:
        """Return our workers: the children beside the front end, which is the first that was forked."""
        return sorted(psutil.Process(self.process.pid).children(), key=lambda child: child.pid)[1:]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def glowplug(*arguments: Any) -> Iterator[Server]:
    """Run `glowplug serve ARGUMENTS` for the length of the block, ready when it begins."""
    rest, grpc = free_port(), free_port()
    with tempfile.NamedTemporaryFile(suffix=".log", delete=False) as log:
        began = time.perf_counter()
        ports = ["--rest-port", str(rest), "--grpc-port", str(grpc)]
        process = subprocess.Popen(
            [sys.executable, "-m", "glowplug", "serve", *map(str, arguments), *ports, "--log-json"],
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            sys.exit(f"the server did not start: {Path(log.name).read_text()}")
        ready_s = time.perf_counter() - began
        yield Server(process, f"127.0.0.1:{rest}", f"127.0.0.1:{grpc}", "", ready_s, Path(log.name))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        Path(log.name).unlink()


def fastapi_keras(model: str, workers: int) -> contextlib.AbstractContextManager[Server]:
    """Run FastAPI with Keras for the length of the block, ready when it begins."""
    return _peer(sys.executable, ["-m", "uvicorn", "fastapi_keras:app", *_UVICORN], keras_file(model), workers)


def fastapi_litert(python: str, model: str, workers: int) -> contextlib.AbstractContextManager[Server]:
    """Run FastAPI with LiteRT for the length of the block; `python` is an interpreter that has both."""
    return _peer(python, ["-m", "uvicorn", "fastapi_litert:app", *_UVICORN], litert_file(model), workers)


def bentoml(python: str, model: str, workers: int) -> contextlib.AbstractContextManager[Server]:
    """Run BentoML with Keras for the length of the block; `python` is an interpreter that has both."""
    command = ["-m", "bentoml", "serve", "bentoml_keras:Model", "--host", "127.0.0.1", "--port", "{port}"]
    return _peer(python, command, keras_file(model), workers)


def ray_serve(python: str, model: str, workers: int) -> contextlib.AbstractContextManager[Server]:
    """Run Ray Serve with Keras for the length of the block; `python` is an interpreter that has both."""
    return _peer(python, ["ray_keras.py", "{port}"], keras_file(model), workers)


_UVICORN = ["--port", "{port}", "--workers", "{workers}", "--log-level", "warning"]


@contextlib.contextmanager
def _peer(python: str, command: list[str], model: Path, workers: int) -> Iterator[Server]:
    """Run a program of bench/scripts whose workers each leave a file when they are ready."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as log:
        environment = {
            **os.environ,
            "MODEL": str(model),
            "WORKERS": str(workers),
            "READY_FOLDER": folder,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "BENTOML_DO_NOT_TRACK": "True",
            "PYTHONPATH": f"{SCRIPTS}:{os.environ.get('PYTHONPATH', '')}",
        }
        began = time.perf_counter()
        process = subprocess.Popen(
            [python, *(part.format(port=port, workers=workers) for part in command)],
            env=environment,
            cwd=SCRIPTS,
            stdout=log,
            stderr=log,
        )
        try:
            while sum(1 for _ in Path(folder).iterdir()) < workers:
                if process.poll() is not None:
                    sys.exit(f"{' '.join(command[:3])} did not start: {Path(log.name).read_text()}")
                time.sleep(0.02)
            ready_s = time.perf_counter() - began
            wait_for_port(port)
            yield Server(process, f"127.0.0.1:{port}", "", "/predict", ready_s)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def wait_for_port(port: int) -> None:
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.01)


def keras_file(name: str) -> Path:
    """Return the `.keras` file of a reference model, built in a process of its own where it is missing."""
    path = models.CACHE / f"{name}.keras"
    if not path.exists():
        code = (
            "import sys, keras, models; keras.utils.set_random_seed(1); m = models.BUILDERS[sys.argv[1]](); "
            "models.unsettle(m); m.save(sys.argv[2])"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-c", code, name, path], cwd=Path(__file__).parent, check=True)
    return path


def litert_file(name: str) -> Path:
    """Return the `.tflite` file of a reference model, converted in a process of its own where it is missing."""
    path = models.CACHE / f"{name}.tflite"
    if not path.exists():
        code = (
            "import sys, pathlib, tensorflow as tf; c = tf.lite.TFLiteConverter.from_saved_model(sys.argv[1]); "
            "pathlib.Path(sys.argv[2]).write_bytes(c.convert())"
        )
        machine.run_quietly(["-c", f"{code}; print()", models.saved_model(name), path])
    return path


def bodies(name: str, folder: Path, model: str = "m") -> tuple[Path, Path]:
    """Write a REST body and a gRPC message for one row of a reference model; return their files."""
    from glowplug.bundle.reader import read_manifest
    from glowplug.serve.wire.messages import serving
    from glowplug.serve.wire.tensor_proto import encode

    shape, dtype = models.INPUTS[name]
    row = (np.random.default_rng(1).random(shape) * (1 if dtype == "float32" else 1000)).astype(dtype)
    rest, grpc = folder / f"{name}.json", folder / f"{name}.pb"
    rest.write_text(json.dumps({"instances": row.tolist()}))
    request = serving("PredictRequest")()
    request.model_spec.name = model
    key = next(iter(read_manifest(bundles.bundle(name)).signatures["serving_default"].inputs))
    request.inputs[key].CopyFrom(encode(row, dtype))
    grpc.write_bytes(request.SerializeToString())
    return rest, grpc


def start_client(server: Server, protocol: str, body: Path, *options: Any, model: str = "m") -> subprocess.Popen[str]:
    """Start the load generator in a process of its own."""
    address = server.rest if protocol == "rest" else server.grpc
    extra = ["--path", server.path] if server.path else []
    command = [sys.executable, CLIENT, protocol, address, model, body, *extra, *options]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)


def finish(client: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for the load generator and return what it saw."""
    output, _ = client.communicate()
    if client.returncode:
        sys.exit("the load generator failed")
    summary: dict[str, Any] = json.loads(output)
    return summary


def load(server: Server, protocol: str, body: Path, *options: Any, model: str = "m") -> dict[str, Any]:
    """Run the load generator to its end."""
    return finish(start_client(server, protocol, body, *options, model=model))
