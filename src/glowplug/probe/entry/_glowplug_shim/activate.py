"""Start recording. The generated `sitecustomize` of a run calls `activate` before any line of the target runs."""

from __future__ import annotations

import atexit
import os
import sys

from . import calls, importing, libraries, processes
from .recorder import Recorder, now_ns

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable


current: list[Run] = []  # the one of this process, for `glowplug.mark`


class Run:
    """The main span of this process, and its end."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.main = 0
        self.ended = False
        self.at_end: Callable[[], None] | None = None
        self.looks: calls.Looks | None = None

    def begin(self) -> None:
        """Open the span that everything in user code nests in."""
        attrs: dict[str, object] = {"kind": "main"}
        arguments = getattr(sys, "orig_argv", [])
        self.recorder.fact("command", list(arguments))
        self.main = self.recorder.begin("user_code", "__main__", attrs)

    def mark(self, name: str) -> None:
        """Record a moment that the program has named."""
        at_ns = now_ns()
        self.recorder.span(at_ns, at_ns, "user_code", name, {"kind": "mark"})

    def end(self) -> None:
        """Close it: the interpreter is going down. Called by the first of our atexit handlers to run."""
        if not self.ended and self.main:
            self.ended = True
            if self.at_end is not None:
                self.at_end()
            if self.looks is not None:
                self.looks.stopped = True
            path = getattr(sys.modules.get("__main__"), "__file__", None)
            self.recorder.fact("modules", importing.count_modules())
            self.recorder.end(self.main, {"path": path} if isinstance(path, str) else None)
            self.recorder.begin("exit", "exit", {"kind": "exit"})


def activate(run_directory: str, entered_ns: int) -> None:
    """Install everything. Nothing here imports or configures TensorFlow."""
    entry = processes.Entry(run_directory)
    processes.hide(entry)
    try:
        recorder = Recorder(os.path.join(run_directory, "events"), "exec")
    except OSError:
        return
    recorder.fact("entered_ns", entered_ns)
    recorder.fact("executable", sys.executable)
    recorder.fact("python", sys.version.split()[0])
    run = Run(recorder)
    run.looks = calls.begin(recorder, run_directory)
    current.append(run)
    processes.follow_children(entry, recorder)
    libraries.install(recorder, run)
    atexit.register(run.end)
    os.register_at_fork(after_in_child=lambda: _restart(run))
    try:
        _chain()
    finally:
        run.begin()


def _restart(run: Run) -> None:
    """In a forked child: its life is a span of its own."""
    run.ended = False
    run.begin()


def _chain() -> None:
    """Load the `sitecustomize` that the shim's own one hides, if there is one."""
    sys.modules.pop("sitecustomize", None)
    finders = [finder.find_spec for finder in sys.meta_path if hasattr(finder, "find_spec")]
    if all(find("sitecustomize", None) is None for find in finders):
        return  # looked for before it is imported: what is not there is no import of the program's
    try:
        import sitecustomize  # type: ignore[import-not-found] # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
