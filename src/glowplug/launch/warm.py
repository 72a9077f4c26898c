"""Asks a standby to run a program, and says what such a standby holds ready. Runs in the client.

A standby calls functions by name, resolved after the fork; the names are given here, by the layer that has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from glowplug.standby.client.foreground import Outcome, run

if TYPE_CHECKING:
    from glowplug.core.target import Target

    from .options import Options

PRELOAD = ("tensorflow", "keras")
COMPANION = "glowplug.launch.companion:prepare"


def run_in_standby(
    target: Target,
    options: Options,
    *,
    start: bool,
    preload: tuple[str, ...] = PRELOAD,
    tell: Callable[[str], None] | None = None,
) -> Outcome:
    """Run a program through a standby and wait for its end.

    With `start`, one is started and waited for where none runs. `tell` hears what a curious user should know. Raises
    `StandbyError` only once the program has begun, so that nobody runs it a second time.
    """
    return run(
        "glowplug.launch.child:run_program",
        [target.kind, target.name, list(target.arguments), options.values()],
        start=start,
        kind="python",
        preload=preload,
        companion=COMPANION,
        program=(target.kind, target.name),
        tell=tell,
    )
