"""Run the tests in several pytest processes, as many at a time as there are processors: `make test`.

Arguments are passed on to each pytest. Progress is shown as it is made, the output of a part whole when it ends, and
the outcome of all of them at the end. An interrupt stops them all.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# What runs in one process, in the order in which they start. A file belongs to the first part that names it or a folder
# above it. Tests of `train` patch Keras and depend on what a process did before: no others run in a process with them.
PARTS = {
    "traces": ["tests/train/test_misses.py", "tests/train/test_pitfalls.py", "tests/train/test_zoo.py"],
    "train": ["tests/train"],
    "servers": ["tests/cli", "tests/serve", "tests/standby"],
    "others": ["tests"],
}
_POLL_SECONDS = 0.5
_SHOW_SECONDS = 30.0
_PATIENCE_SECONDS = 60.0


class Part:
    """One pytest process."""

    def __init__(self, name: str, arguments: list[str], log: Path) -> None:
        self.name, self._log = name, log
        self._shown, self._shown_at = 0, time.monotonic()
        with log.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # an interrupt comes from us, once: a second one would end its cleaning up
            )

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def show_progress(self) -> None:
        """Show the rows of tests that are done since the last time, and from time to time one that is not."""
        *lines, last = self._log.read_text(errors="replace").split("\n")
        rows = [line for line in lines[self._shown :] if line.endswith("%]")]
        if not rows and last and time.monotonic() > self._shown_at + _SHOW_SECONDS:
            rows = [last]
        for row in rows:
            print(f"{self.name:>8} {row}", flush=True)
            self._shown_at = time.monotonic()
        self._shown = len(lines)

    def show(self) -> None:
        print(f"{f' {self.name} ':=^80}\n{self._log.read_text(errors='replace')}", flush=True)

    def interrupt(self) -> None:
        if not self.has_ended():
            self._process.send_signal(signal.SIGINT)

    def wait(self) -> None:
        """Let it clean up after an interrupt."""
        try:
            self._process.wait(_PATIENCE_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):  # whoever interrupts twice means it
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def outcome(self) -> tuple[bool, str]:
        """Return whether it passed, and a line that says so."""
        code, last = self._process.returncode, self._log.read_text(errors="replace").rstrip().rpartition("\n")[2]
        passed = code in (0, 5)  # 5: the arguments left none of its tests
        return passed, f"{self.name:>8} {'passed' if passed else f'FAILED ({code})'}: {last}"


def run(parts: dict[str, list[str]], arguments: list[str], at_once: int, logs: Path) -> int:
    """Run all parts and return the exit code."""
    waiting, taken = list(parts.items()), []
    running: list[Part] = []
    ended: list[Part] = []
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                name, paths = waiting.pop(0)
                chosen = [*paths, *(f"--ignore={path}" for path in taken), *arguments]
                running.append(Part(name, chosen, logs / f"{name}.log"))
                taken += paths
            time.sleep(_POLL_SECONDS)
            for part in list(running):
                part.show_progress()
                if part.has_ended():
                    part.show()
                    running.remove(part)
                    ended.append(part)
    finally:
        for part in running:
            part.interrupt()
        for part in running:
            part.wait()
            part.show()
    outcomes = [part.outcome() for part in ended]
    print("\n".join(line for _, line in outcomes))
    return 0 if all(passed for passed, _ in outcomes) else 1


def main() -> int:
    """Run the tests of this repository; returns the exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    os.chdir(Path(__file__).resolve().parents[1])
    with tempfile.TemporaryDirectory() as logs:
        return run(PARTS, sys.argv[1:], os.cpu_count() or 1, Path(logs))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
