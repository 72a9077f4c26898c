"""Which functions of the user's own code run, by looking at the main thread's frames now and then. Runs in the target.

Only where it was asked for: it takes a thread, which a program that forks might notice. What is recorded of a look is
the user's own frames, outermost first, and the function of a library that the innermost of them is in.
"""

from __future__ import annotations

import _thread
import os
import sys
from time import sleep  # before `time.sleep` is instrumented

from .recorder import Recorder, now_ns
from .user_lines import is_user_file

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from types import FrameType

    Frames = list[tuple[str, str, int, int]]

WANTED = "calls"  # a file of the run's directory: the process that removes it is the one that looks
INTERVAL_S = 0.01
MAXIMUM_LOOKS = 60_000  # ten minutes: a start is over by then
MAXIMUM_DEPTH = 100


class Looks:
    """Looks at one thread until it is told to stop."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._pid = os.getpid()
        self._thread = _thread.get_ident()
        self._stacks: dict[tuple[tuple[str, str, int, int], ...], int] = {}
        self.stopped = False

    def start(self) -> None:
        """Begin, on a thread that `threading` does not list."""
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        for _ in range(MAXIMUM_LOOKS):
            sleep(INTERVAL_S)
            if self.stopped:
                return
            frame = sys._current_frames().get(self._thread)
            stack = tuple(user_frames(frame))
            del frame  # it would keep alive what the program has let go
            if not stack:
                continue
            number = self._stacks.get(stack)
            if number is None:
                number = self._stacks[stack] = len(self._stacks)
                self._recorder.fact("calls_stack", (number, [*stack]))
            self._recorder.fact("calls_look", (now_ns(), number))


def user_frames(frame: FrameType | None) -> Frames:
    """Return the user's frames, outermost first, as (file, function, its first line, the line it is at).

    Where the innermost is inside a library, that comes last, with no file: the function that the user's code called.
    """
    found: Frames = []
    library = ""
    depth = 0
    while frame is not None and depth < MAXIMUM_DEPTH:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        if is_user_file(code.co_filename):
            found.append((code.co_filename, name, code.co_firstlineno, frame.f_lineno or 0))
            depth += 1
        elif not found:
            library = f"{frame.f_globals.get('__name__', '?')}.{name}"
        frame = frame.f_back
    found.reverse()
    if found and library:
        found.append(("", library, 0, 0))
    return found


def begin(recorder: Recorder, run_directory: str) -> Looks | None:
    """Look at this process, if that was asked for and no other process does so already."""
    try:
        os.unlink(os.path.join(run_directory, WANTED))
    except OSError:
        return None
    looks = Looks(recorder)
    looks.start()
    return looks
