"""Start the target under the shim, watch it, and wait for its end.

Runs in the profiler. The target gets our stdin, stdout, stderr, working directory and process group. What a terminal
sends (Ctrl-C) reaches it directly, so it is ignored here; what is sent to this process alone is passed on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from glowplug.core.clock import now_ns
from glowplug.core.errors import UsageError

from .entry_files import child_environment
from .sample import Sampler, Samples

_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)


@dataclass(frozen=True, slots=True)
class Launched:
    """How the target ended, and what was seen from outside while it ran. Times are of the monotonic clock."""

    pid: int
    started_ns: int
    ended_ns: int
    exit_code: int
    cpu_ns: int
    major_faults: int
    minor_faults: int
    peak_rss_bytes: int
    samples: Samples


def launch(arguments: tuple[str, ...], run_directory: Path, environment: Mapping[str, str] | None = None) -> Launched:
    """Run the target to its end."""
    child = child_environment(os.environ if environment is None else environment, run_directory)
    sys.stdout.flush()  # what was printed before the target comes before the target's own output
    sys.stderr.flush()
    started_ns = now_ns()
    with _signals_for_target() as forward:
        try:
            process = subprocess.Popen(arguments, env=child, close_fds=False, restore_signals=True)
        except OSError as error:
            seen = f"{arguments[0]} ({error.strerror})"
            raise UsageError(
                "the target cannot be started", seen=seen, remedy="look at the file, and whether it may be run"
            ) from error
        forward.append(process.pid)
        sampler = Sampler(process.pid, started_ns)
        sampler.start()
        # Not Popen.wait: only wait4 tells what this child used, whatever other children we have.
        status, usage = _wait(process.pid)
        ended_ns = now_ns()
        forward.clear()
    process.returncode = os.waitstatus_to_exitcode(status)
    return Launched(
        pid=process.pid,
        started_ns=started_ns,
        ended_ns=ended_ns,
        exit_code=process.returncode,
        cpu_ns=round((usage.ru_utime + usage.ru_stime) * 1e9),
        major_faults=usage.ru_majflt,
        minor_faults=usage.ru_minflt,
        peak_rss_bytes=usage.ru_maxrss * 1024,
        samples=sampler.stop(),
    )


def _wait(pid: int) -> tuple[int, os.struct_rusage]:  # type: ignore[name-defined]
    while True:
        try:
            _, status, usage = os.wait4(pid, 0)
        except InterruptedError:
            continue
        return status, usage


@contextlib.contextmanager
def _signals_for_target() -> Iterator[list[int]]:
    """Leave signals to the target while the block runs; yield the list that the caller puts its pid into."""
    pids: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pids
        return

    def forward(number: int, _: object) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def ignore(_: int, __: object) -> None:
        """Take the signal: the terminal gave it to the target too. SIG_IGN would be inherited by the target."""

    previous = {number: signal.getsignal(number) for number in (*_FORWARDED, *_FROM_TERMINAL)}
    for number in _FORWARDED:
        if previous[number] is not signal.SIG_IGN:
            signal.signal(number, forward)
    for number in _FROM_TERMINAL:
        if previous[number] is not signal.SIG_IGN:
            signal.signal(number, ignore)
    try:
        yield pids
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
