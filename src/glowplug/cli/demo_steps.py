"""The steps of `glowplug demo`: each runs programs of the tour in fresh processes and returns what they said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glowplug.core.errors import RuntimeFailure

SHAPE = (1, 64, 64, 3)
_GLOWPLUG = ("-m", "glowplug")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tour's programs and models are, and where what they cache goes, which is nobody's afterwards."""

    directory: Path
    cache: Path

    def environment(self) -> dict[str, str]:
        """Return the variables that the tour's programs get."""
        variables = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, "GLOWPLUG_CACHE_DIR": str(self.cache)}
        variables.pop("GLOWPLUG_TRACE_CACHE_DIR", None)  # somebody's own traces, perhaps on a storage
        return variables


def run_step(place: Place, *arguments: str) -> str:
    """Run a program of the tour and return what it printed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=place.directory,
        env=place.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise _failed(arguments, last)
    return done.stdout


def timed_step(place: Place, *arguments: str) -> dict[str, Any]:
    """Run a program whose last line is JSON; `first_result_ns` counts from just before its process was made."""
    began = time.monotonic_ns()
    record: dict[str, Any] = json.loads(run_step(place, *arguments).splitlines()[-1])
    record["first_result_ns"] = record.pop("at_ns") - began
    return record


def first_training_steps(place: Place, note: Callable[[str], None], *, layers: int) -> dict[str, Any]:
    """Run a training program as it is, and under `glowplug run` twice: the first of them learns."""
    found = {}
    for kind, words in (
        ("stock", ()),
        ("first", (*_GLOWPLUG, "run", "--no-standby")),
        ("second", (*_GLOWPLUG, "run", "--no-standby")),
    ):
        note(f"train.py, {kind if kind == 'stock' else f'{kind} time under glowplug run'}")
        found[kind] = timed_step(place, *words, "train.py", str(layers))
    return {
        "times_sooner": round(found["stock"]["first_result_ns"] / found["second"]["first_result_ns"], 2),
        "same_loss": len({record["loss"] for record in found.values()}) == 1,
        **{f"{kind}_ns": record["first_result_ns"] for kind, record in found.items()},
    }


def serve_once(place: Place, bundle: str) -> dict[str, Any] | str:
    """Start `glowplug serve`, ask it once, and stop it. Returns why not where its packages are missing."""
    import http.client
    import socket

    from .extras import all_extras

    missing = next((extra.missing for extra in all_extras() if extra.name == "serve"), [])
    if missing:
        return f"glowplug serve needs {', '.join(missing)}: pip install 'glowplug[serve]'"
    with socket.socket() as rest, socket.socket() as rpc:
        for probe in (rest, rpc):
            probe.bind(("127.0.0.1", 0))
        ports = [str(probe.getsockname()[1]) for probe in (rest, rpc)]
    words = (*_GLOWPLUG, "serve", f"tour={bundle}", "--rest-port", ports[0], "--grpc-port", ports[1], "--json")
    began = time.monotonic_ns()
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=place.directory,
        env=place.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            assert server.stdout is not None
            if not server.stdout.readline():  # it prints a line when it is ready
                raise _failed(words, f"it ended with {server.wait()}")
            ready_ns = time.monotonic_ns() - began
            connection = http.client.HTTPConnection("127.0.0.1", int(ports[0]), timeout=60)
            connection.request("POST", "/v1/models/tour:predict", json.dumps({"instances": _instances()}))
            answer = connection.getresponse()
            body = json.loads(answer.read())
            if answer.status != 200:
                raise _failed(words, f"{answer.status} {body}")
            answered_ns = time.monotonic_ns() - began
            connection.close()
        finally:
            server.terminate()
    return {"ready_ns": ready_ns, "answered_ns": answered_ns, "answer": body["predictions"][0]}


def _instances() -> list[Any]:
    """The image that the other programs of the tour use."""
    import numpy

    size = SHAPE[1] * SHAPE[2] * SHAPE[3]
    rows: list[Any] = numpy.linspace(0, 1, size, dtype="float32").reshape(SHAPE).tolist()
    return rows


def _failed(words: tuple[str, ...], seen: str) -> RuntimeFailure:
    return RuntimeFailure(f"a step of the tour failed ({' '.join(words)})", seen=seen, remedy="run glowplug doctor")
