"""Replaces this process by a fresh interpreter that runs the program, and that lets Glowplug in before it.

So the program has the interpreter's own `__main__`, stack, arguments and way of ending. What comes along is an entry in
front of PYTHONPATH (`entry/sitecustomize.py`), which takes itself out again.
"""

from __future__ import annotations

import os
import sys

from .options import EXPLAIN_FILE

TYPE_CHECKING = False  # as in `options`
if TYPE_CHECKING:
    from glowplug.core.target import Target

    from .options import Options

ENTRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "entry")  # noqa: PTH100, PTH118, PTH120 - pathlib is not free


def replace_process(target: Target, options: Options) -> None:
    """Run the program in a fresh interpreter that takes this process over; return only where that cannot be done."""
    words = _interpreter_words()
    if words is None or sys.flags.ignore_environment or sys.flags.no_site:  # -E, -I, -S: ours would not be let in
        return
    environment = _environment_at_start()
    if EXPLAIN_FILE in os.environ:
        environment[EXPLAIN_FILE] = os.environ[EXPLAIN_FILE]
    environment["PYTHONPATH"] = entry_for(options.letters(), environment.get("PYTHONPATH"))
    try:
        os.execve(sys.executable, [*words, *target.words()], environment)
    except (OSError, ValueError):
        return


def entry_for(letters: str, value: str | None) -> str:
    """Return the PYTHONPATH that lets Glowplug into a process of this interpreter that would have had `value` there.

    `entry/sitecustomize.py` reads the second part and takes both out again.
    """
    stands_for = "u" if value is None else "" if value else "e"
    note = f"{letters}{stands_for} {sys.implementation.cache_tag} {sys.prefix}"
    return ":".join([ENTRY, f"{ENTRY}/{note}", *([value] if value else [])])


def _interpreter_words() -> list[str] | None:
    """Return how this interpreter was called, with its own options; None where `glowplug run` was not what it ran."""
    given = sys.argv[1:]
    own = len(sys.orig_argv) - len(given)
    if given[:1] != ["run"] or own < 2 or sys.orig_argv[own:] != given:
        return None
    end = own - 2 if sys.orig_argv[own - 2 : own] == ["-m", "glowplug"] else own - 1
    return sys.orig_argv[:end] if end >= 1 else None


def _environment_at_start() -> dict[str, str]:
    """Return what this process was given: what a `sitecustomize` has changed since, it will change again.

    A process that was itself let into has only `os.environ` as it was meant.
    """
    try:
        with open("/proc/self/environ", "rb") as stream:  # noqa: PTH123 - pathlib is not free
            pairs = [os.fsdecode(item).partition("=") for item in stream.read().split(b"\0") if b"=" in item]
    except OSError:
        pairs = []
    found = {name: value for name, _, value in pairs}
    return dict(os.environ) if not found or ENTRY in found.get("PYTHONPATH", "") else found
