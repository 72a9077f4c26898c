"""What `glowplug run` does around a program: becomes it, and has its own parts switched on when they are needed."""

from __future__ import annotations

import os

from glowplug.imports.watch import Watcher

from .options import EXPLAIN_FILE

TYPE_CHECKING = False  # as in `options`
if TYPE_CHECKING:
    from glowplug.core.target import Target

    from .options import Options
    from .parts import Parts


def start(target: Target, options: Options) -> None:
    """Run the program with everything the options ask for: in an interpreter of its own, or else in this one."""
    from .interpreter import replace_process

    replace_process(target, options)
    from .program import execute

    prepare(options)
    execute(target)


def prepare(options: Options, *, warm: bool = False) -> None:
    """Have what the options ask for switched on once the program imports TensorFlow or Keras.

    A `warm` process is a standby's child: it has TensorFlow already.
    """
    made: list[Parts] = []
    document = os.environ.pop(EXPLAIN_FILE, None)

    def switch_on() -> None:
        from .parts import Parts

        if not made:
            made.append(Parts(options, watcher, warm=warm))

    def tell() -> None:
        switch_on()
        made[0].ledger.tell(document if options.explain == "json" else None)

    watcher = Watcher(switch_on, ("keras", "tensorflow"))
    watcher.install()
    if options.explain:
        import atexit

        atexit.register(tell)  # first: the last to be called
