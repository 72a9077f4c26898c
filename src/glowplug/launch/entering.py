"""What Glowplug does in an interpreter that is about to run a program. Called by `entry/sitecustomize.py`.

Everything here is on the path of programs that import no TensorFlow at all, and of every Python process they start: it
imports next to nothing, and no module of the standard library that the program could have one of its own of.
"""

from __future__ import annotations

import os

from .interpreter import entry_for
from .options import from_letters
from .start import prepare

TYPE_CHECKING = False  # as in `options`
if TYPE_CHECKING:
    from .options import Options


def enter(letters: str) -> None:
    """Switch on what the letters ask for, here and in the Python processes that this one will start."""
    options = from_letters(letters)
    leave_to_children(options)
    prepare(options)


def leave_to_children(options: Options) -> None:
    """Put what brought us here into the environment of new processes, and not into `os.environ`.

    `os.putenv` changes what they inherit alone. A program that sets PYTHONPATH, or gives a child an environment of its
    own, has the last word.
    """
    if options.children:
        os.putenv("PYTHONPATH", entry_for(options.letters().rstrip("xj"), os.environ.get("PYTHONPATH")))
