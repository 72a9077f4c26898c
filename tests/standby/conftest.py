"""Real standbys in a directory of their own, with numpy preloaded: light enough for each test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[2] / "src"
CLIENT = """
import sys
from glowplug.core.target import target_from_words
from glowplug.launch.options import Options
from glowplug.launch.warm import run_in_standby
from glowplug.standby.client.foreground import leave

preload, start, *words = sys.argv[1:]
options = Options(imports=False, prefetch=False, trace_cache=False)
names = tuple(preload.split(","))
outcome = run_in_standby(target_from_words(words), options, start=start == "start", preload=names)
if outcome.code is None:
    sys.exit(f"not run: {outcome.note}")
leave(outcome.code)
"""


class Standby:
    """Runs programs through standbys of one directory."""

    def __init__(self, directory: Path, scripts: Path) -> None:
        self.directory = directory
        self.scripts = scripts
        self.environment = {**os.environ, "GLOWPLUG_STANDBY_DIR": str(directory), "PYTHONPATH": str(SOURCE)}
        for name in (
            "PYTHONDONTWRITEBYTECODE",
            "TF2_BEHAVIOR",
            "HDF5_PLUGIN_PATH",
        ):  # the latter by another test's import
            self.environment.pop(name, None)

    def command(self, *words: Any, preload: str = "numpy", start: bool = True) -> list[str]:
        return [sys.executable, "-c", CLIENT, preload, "start" if start else "use", *map(str, words)]

    def script(self, code: str, name: str = "program.py") -> Path:
        path = self.scripts / name
        path.write_text(code, encoding="utf-8")
        return path

    def run(self, *words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
        environment = options.pop("env", None) or self.environment
        ours = {name: options.pop(name) for name in ("preload", "start") if name in options}
        options = {"timeout": 60, "capture_output": True, "text": True, "cwd": self.scripts, **options}
        return subprocess.run(self.command(*words, **ours), env=environment, **options)

    def begin(self, *words: Any, **options: Any) -> subprocess.Popen[str]:
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen(self.command(*words), env=self.environment, text=True, cwd=self.scripts, **options)

    def glowplug(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "glowplug", *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)

    def pids(self) -> list[int]:
        """Return the processes that hold one of the locks, which are the standbys."""
        import json

        return [one["pid"] for one in json.loads(self.glowplug("standby", "status", "--json").stdout)["standbys"]]


@pytest.fixture(scope="session")
def make_standby() -> type[Standby]:
    return Standby


@pytest.fixture
def standby(tmp_path: Path) -> Iterator[Standby]:
    with tempfile.TemporaryDirectory(prefix="standby-") as directory:
        Path(directory).chmod(0o700)
        found = Standby(Path(directory), tmp_path)
        yield found
        for pid in found.pids():
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool]], None]:
    """Poll for a state of another process that sends no event."""

    def wait(condition: Callable[[], bool]) -> None:
        import threading
        import time

        end, pause = time.monotonic() + 60, threading.Event()
        while not condition():
            assert time.monotonic() < end, "it did not happen within 60 s"
            pause.wait(0.01)

    return wait
