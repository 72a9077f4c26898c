"""The process in which a model is converted and compared: what dies there is an answer, and nothing is left behind.

The parent writes one order to the child's standard input and keeps it open; the child reports on a pipe, one JSON
document a line: `{"stage": ...}`, then `{"done": reason}` or `{"error": ...}`. When the parent is gone, for whatever
cause, the child sees the end of its standard input, removes the unfinished directory and ends. So it stays until the
directory has its final name.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, NoReturn

from glowplug.core import errors

from .crash import Crash, last_words
from .job import Job, Order, import_tensorflow
from .source.sources import Located

_DEBUG = "GLOWPLUG_DEBUG"
_REMOVALS = 100  # what the main thread still writes may come in between


class Child:
    """Parent's side. Started at once, so that it imports TensorFlow while the parent still prepares the order."""

    def __init__(
        self, directory: Path, environment: Mapping[str, str] = os.environ, *, tensorflow: bool = True
    ) -> None:
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        read, write = os.pipe()
        # The same modules as here, and not those of the working directory.
        code = f"import sys; sys.path[:] = {sys.path!r}; from glowplug.convert.child import main"
        code += f"; main({write}, tensorflow={tensorflow})"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, str(directory)],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=None if os.environ.get(_DEBUG) else self._log,
            pass_fds=(write,),
            env=environment,
            # A signal for the whole group reaches the parent, whose end the child sees. Not a session of its own: Linux
            # shares processors among sessions first (`sched_autogroup_enabled`), whatever the priority of a process.
            process_group=0,
        )
        os.close(write)
        self._reports = os.fdopen(read, encoding="utf-8")

    def run(self, order: Order, progress: Callable[[str], None]) -> str | None:
        """Have the order done; return why the bundle is not native. Raises the child's error, or `Crash`."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(asdict(order), default=str).encode() + b"\n")
            self._process.stdin.flush()
        stage = "start"
        for line in self._reports:
            report = json.loads(line)
            if "stage" in report:
                stage = report["stage"]
                progress(stage)
            elif "error" in report:
                raise _error(report)
            elif "unexpected" in report:
                raise Crash(1, stage, " ".join(report["unexpected"].split())[:300])
            else:
                reason: str | None = report["done"]
                return reason
        raise Crash(self._process.wait(), stage, last_words(self._log))

    def close(self) -> None:
        """End the child. The directory is the parent's to keep or to remove."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._reports.close()
        self._log.close()


def _error(report: dict[str, Any]) -> errors.GlowplugError:
    kind: type[errors.GlowplugError] = getattr(errors, report["error"], errors.RuntimeFailure)
    return kind(report["what"], seen=report["seen"], remedy=report["remedy"])


def main(descriptor: int, *, tensorflow: bool) -> NoReturn:
    """Child's side. TensorFlow is imported while the parent prepares the order, unless there is no need of it."""
    directory = Path(sys.argv[1])
    os.set_inheritable(descriptor, False)

    def report(**content: Any) -> None:
        with contextlib.suppress(BrokenPipeError):  # the parent is gone, and the other thread cleans up
            os.write(descriptor, json.dumps(content).encode() + b"\n")

    if tensorflow:
        report(stage="import TensorFlow")
        import_tensorflow()
    line = sys.stdin.readline()
    if not line:
        _leave_nothing(directory)
    threading.Thread(target=_watch_parent, args=(directory,), daemon=True).start()
    try:
        reason = Job(_order(json.loads(line)), lambda stage: report(stage=stage)).run()
    except errors.GlowplugError as error:
        _show_traceback()
        seen = None if error.seen is None else " ".join(str(error.seen).split())
        report(error=type(error).__name__, what=error.what, seen=seen, remedy=error.remedy)
    except Exception as error:  # the process boundary: the parent tells, and `auto` falls back
        _show_traceback()
        report(unexpected=f"{type(error).__name__}: {error}")
    else:
        report(done=reason)
    threading.Event().wait()  # until the parent has put the directory into its place, and ends this process
    raise AssertionError


def _order(document: dict[str, Any]) -> Order:
    paths = {key: Path(document[key]) if document[key] else None for key in ("model", "warmup", "calibration")}
    located = document["located"] and Located(
        **{**document["located"], "directory": Path(document["located"]["directory"])}
    )
    changed: dict[str, Any] = {
        "directory": Path(document["directory"]),
        "op_libraries": tuple(document["op_libraries"]),
    }
    if document["tags"] is not None:
        changed["tags"] = tuple(document["tags"])
    return Order(**{**document, **paths, **changed, "located": located})


def _show_traceback() -> None:
    if os.environ.get(_DEBUG):
        import traceback

        traceback.print_exc()


def _watch_parent(directory: Path) -> None:
    sys.stdin.read()
    _leave_nothing(directory)


def _leave_nothing(directory: Path) -> NoReturn:
    for _ in range(_REMOVALS):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            break
    os._exit(1)
