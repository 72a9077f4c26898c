"""Makes each child draw its own numbers, as fresh processes do. Runs in the child.

`random` reseeds itself after a fork, and so do the names of temporary files; `uuid`, `secrets` and `os.urandom` ask the
kernel each time. TensorFlow seeds its own generators when they are first used, which is after the fork. numpy's global
generator and the place of temporary files are left. What a child cannot change is the seed of `hash(str)`: all children
of a standby share it (see docs/explanation/standby.md).
"""

from __future__ import annotations

import sys

from . import pools
from .withheld import WithheldModules


def renew(withheld: WithheldModules | None) -> None:
    """Reseed what is loaded, now, or when the program first asks for it."""
    temporary = sys.modules.get("tempfile")
    if temporary is not None:
        temporary.__dict__["tempdir"] = None  # it was chosen by the standby's TMPDIR
    if withheld is not None and withheld.holds("numpy"):
        withheld.after_release("numpy", _numpy)
    elif "numpy" in sys.modules:
        _numpy()


def _numpy() -> None:
    pools.restore()
    module = sys.modules.get("numpy.random")
    if module is not None:
        module.seed()
