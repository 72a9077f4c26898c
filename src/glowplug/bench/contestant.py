"""A contestant: a model in the form that one program takes, and that program's environment. And a process of it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from .contestants.start import now_ns, read_arrays

_SCRIPTS = Path(str(files(__package__))) / "contestants"
_KEPT_LOG_BYTES = 20_000
_LINE_BYTES = 1 << 20
# Python's own would change what is imported in an environment that is not ours.
_DROPPED_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT")


@dataclass(frozen=True, slots=True)
class Question:
    """What every contestant is asked: a signature, and inputs as `contestants.start.write_arrays` left them."""

    signature: str
    inputs: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Contestant:
    """Who answers. `script` is a module of `contestants`; `distributions` are what one would install for it.

    `import_path` replaces that of the interpreter, for a process that must find the modules that its parent has.
    """

    name: str
    title: str
    script: str
    python: Path
    model: Path
    distributions: tuple[str, ...] = ()
    import_path: tuple[str, ...] = ()
    op_libraries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """Of one process: its share of what it maps, what it shares with nobody, and the most it ever had."""

    pss_bytes: int
    private_bytes: int
    peak_rss_bytes: int


class ContestantError(Exception):
    """A contestant gave no answer; the text says why in one line."""


class Running:
    """A contestant's process, from the moment at which it is made. Use it in a `with` block, which ends it.

    `first_ns` is the time from then to its first answer.
    """

    def __init__(self, contestant: Contestant, question: Question, *, threads: int, limit_s: float) -> None:
        job = {
            "contestant": contestant.script,
            "model": str(contestant.model),
            "signature": question.signature,
            "inputs": list(question.inputs),
            "threads": threads,
            "import_path": list(contestant.import_path),
            "op_libraries": list(contestant.op_libraries),
        }
        command = [str(contestant.python), str(_SCRIPTS / "start.py"), json.dumps(job)]
        self._limit_s = limit_s
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._rest = b""
        environment = process_environment(contestant.python)
        began = now_ns()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=environment
        )
        try:
            report = self._report()
        except BaseException:
            self.close()
            raise
        self.first_ns: int = report["first_at_ns"] - began
        self.loaded_ns: int = report["loaded_at_ns"] - began

    def steady(self, seconds: float, callers: int) -> tuple[int, float]:
        """Return the median call of one caller, and the calls a second of several at once."""
        report = self._ask({"steady": seconds, "callers": callers})
        return report["latency_ns"], report["rate_per_second"]

    def answers(self) -> dict[str, Any]:
        """Return the arrays of the first answer, by name."""
        with tempfile.TemporaryDirectory(prefix="glowplug-bench-") as directory:
            return read_arrays(self._ask({"answers": directory})["answers"])

    def memory(self) -> Memory:
        """Return the process's memory as it is now."""
        folder = Path("/proc", str(self._process.pid))
        try:
            rollup = _kilobytes((folder / "smaps_rollup").read_text(encoding="ascii"))
            status = _kilobytes((folder / "status").read_text(encoding="utf-8"))
            private = rollup["Private_Clean"] + rollup["Private_Dirty"]
            return Memory(rollup["Pss"], private, status["VmHWM"])
        except (OSError, KeyError) as error:  # it has ended, or the kernel does not tell
            code = self._process.poll()
            reason = f"its memory cannot be read ({error})" if code is None else ending(code, self._log)
            raise ContestantError(reason) from error

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, which `_report` tells
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        return self._report()

    def _report(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        descriptor, until = self._process.stdout.fileno(), now_ns() + round(self._limit_s * 1e9)
        while b"\n" not in self._rest:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, (until - now_ns()) / 1e9))
            if not ready:
                raise ContestantError(f"no answer within {self._limit_s:g} s")
            data = os.read(descriptor, _LINE_BYTES)
            if not data:
                raise ContestantError(ending(self._process.wait(), self._log))
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            report = json.loads(line)
        except ValueError:
            report = None
        if not isinstance(report, dict):
            raise ContestantError(f"no answer, but {line[:80]!r}")
        return report


def process_environment(python: Path) -> dict[str, str]:
    """Return the variables for a process of that interpreter. TensorFlow greets on stderr at every start."""
    dropped = () if python == Path(sys.executable) else _DROPPED_VARIABLES
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    return {**kept, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONIOENCODING": "utf-8"}


def ending(returncode: int, log: IO[bytes]) -> str:
    """Return one line about a process that ended without an answer."""
    log.seek(max(0, log.seek(0, os.SEEK_END) - _KEPT_LOG_BYTES))
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    said = " ".join(lines[-1].split())[:300] if lines else ""
    if returncode < 0:
        known = {one.value for one in signal.Signals}
        name = signal.Signals(-returncode).name if -returncode in known else f"signal {-returncode}"
        return f"crashed with {name}" + (f" after saying: {said}" if said else "")
    return said or f"ended with exit code {returncode}"


def script_command(python: Path, script: str, words: Sequence[str | Path]) -> list[str]:
    """Return the command that runs a script of `contestants` in an environment."""
    return [str(python), str(_SCRIPTS / f"{script}.py"), *map(str, words)]


def _kilobytes(text: str) -> dict[str, int]:
    """Return the fields of a file of /proc that are sizes, in bytes."""
    fields = (line.partition(":") for line in text.splitlines())
    return {key: int(value.split()[0]) * 1024 for key, _, value in fields if value.rstrip().endswith(" kB")}
