"""Calls a function in a process of its own, with a time limit: converters leak and hang, and models make libraries die.

The argument and the result are JSON. What ends without an answer is told as a fault of the model. When the caller is
gone, for whatever cause, the process sees the end of its standard input and ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NoReturn

from glowplug.core.errors import GlowplugError, UnsupportedModelError
from glowplug.loader.channel import describe_error, rebuild_error

from .crash import Crash, last_words

_DEBUG = "GLOWPLUG_DEBUG"


def call(function: str, argument: Mapping[str, Any], *, stage: str, seconds: float, library: str = "LiteRT") -> Any:
    """Return what `module:function` returns for the argument, or raise its error.

    `UnsupportedModelError` says that the process died or took too long; `stage` and `library` are what it says of it.
    """
    read, write = os.pipe()
    code = f"import sys; sys.path[:] = {sys.path!r}; from glowplug.convert.isolated import main; main({write})"
    with tempfile.TemporaryFile() as log, os.fdopen(read, "rb", buffering=0) as answers:
        process = subprocess.Popen(
            [sys.executable, "-c", code, function],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=None if os.environ.get(_DEBUG) else log,
            pass_fds=(write,),
            process_group=0,  # and no session, as in `child`
        )
        os.close(write)
        assert process.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(argument, default=str).encode() + b"\n")
                process.stdin.flush()
            data = _read_all(answers, time.monotonic() + seconds)
            if data is None:
                raise UnsupportedModelError(
                    f"{library} takes too long for this model",
                    seen=f"more than {seconds:.0f} s at the stage {stage!r}",
                    remedy="pack with another engine",
                )
            if not data:
                raise Crash(process.wait(), stage, last_words(log), library).as_error()
        finally:
            process.kill()
            process.wait()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
    answer = json.loads(data)
    if "error" in answer:
        raise rebuild_error(answer)
    if "unexpected" in answer:
        raise Crash(1, stage, answer["unexpected"], library).as_error()
    return answer["result"]


def _read_all(stream: Any, until: float) -> bytes | None:
    """Return all that is written until the other end is closed; None where that takes too long."""
    found = b""
    while True:
        ready, _, _ = select.select([stream], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return None
        part: bytes = stream.read(1 << 16)
        found += part
        if not part:
            return found


def main(descriptor: int) -> NoReturn:
    """The other process's side."""
    os.set_inheritable(descriptor, False)
    argument = json.loads(sys.stdin.readline() or "null")
    threading.Thread(target=_watch_caller, daemon=True).start()
    module, _, name = sys.argv[1].partition(":")
    answer: dict[str, Any]
    try:
        answer = {"result": getattr(import_module(module), name)(argument)}
    except GlowplugError as error:
        answer = describe_error(error)
    except Exception as error:  # the process boundary: the caller tells
        if os.environ.get(_DEBUG):
            import traceback

            traceback.print_exc()
        answer = {"unexpected": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
    with contextlib.suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as stream:
        stream.write(json.dumps(answer).encode())
    os._exit(0)  # what libraries do at the end of a process is no part of the answer


def _watch_caller() -> None:
    sys.stdin.read()
    os._exit(1)
