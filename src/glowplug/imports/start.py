"""What `glowplug run` does around a program: switches its parts on, then becomes the program."""

from __future__ import annotations

from typing import NamedTuple

from .program import Target, execute


class Options(NamedTuple):
    """Which parts are on. `explain` is empty, `text` or `json`: how to say at exit what was applied."""

    imports: bool = True
    prefetch: bool = True
    trace_cache: bool = True
    explain: str = ""


def start(target: Target, options: Options) -> None:
    """Run the program in this process with everything the options ask for."""
    prepare(options)
    execute(target)


def prepare(options: Options) -> None:
    """Switch on what the options ask for, in the process that will be the program."""
    from .watch import Watcher

    watcher = Watcher()
    watcher.install()
    if options.imports:
        from .accelerate import install

        install(watcher)
