"""`glowplug.profile`: a profile with its findings, which a notebook shows; and the notebook's `%%glowplug`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from glowplug.advise.engine import with_findings
from glowplug.core.display import show_with
from glowplug.core.profile import Profile
from glowplug.probe.run import profile_target
from glowplug.report.inline import render_inline


def profile(
    words: Sequence[str],
    *,
    repeat: int = 1,
    cold_cache: bool = False,
    calls: bool = False,
    environment: Mapping[str, str] | None = None,
    python: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Profile:
    """Run a program in a fresh process and return where its start went, and what to do about it.

    `words` is what follows `glowplug profile` on the command line: a script, `-m module`, `-c code` or `-- command`,
    with arguments. In a notebook the profile shows itself as the report.
    """
    show_with(render_inline)
    found = profile_target(
        words,
        repeat=repeat,
        cold_cache=cold_cache,
        calls=calls,
        environment=environment,
        python=python,
        progress=progress,
    )
    return with_findings(found)


def install_magic(shell: Any) -> None:
    """Give an IPython shell the cell magic `%%glowplug`."""
    from IPython.core.error import UsageError

    show_with(render_inline)

    class Parser(argparse.ArgumentParser):
        """Says what is wrong in the one line that IPython shows of its own usage errors."""

        def error(self, message: str) -> NoReturn:
            raise UsageError(f"%%glowplug: {message}; it takes --repeat N, --cold-cache and --calls")

    parser = Parser(prog="%%glowplug", add_help=False)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--cold-cache", action="store_true")
    parser.add_argument("--calls", action="store_true")

    def glowplug(line: str, cell: str) -> Profile:
        """Profile a cell in a fresh process: %%glowplug [--repeat N] [--cold-cache] [--calls]"""
        try:
            given = parser.parse_args(shlex.split(line))
        except ValueError as error:
            raise UsageError(f"%%glowplug: {error}") from None
        if given.repeat < 1:
            raise UsageError(f"%%glowplug: a cell runs at least once, not {given.repeat} times")
        return profile(["-c", cell], repeat=given.repeat, cold_cache=given.cold_cache, calls=given.calls)

    shell.register_magic_function(glowplug, magic_kind="cell")
