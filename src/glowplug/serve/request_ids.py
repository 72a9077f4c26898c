"""Names for requests that came without one."""

from __future__ import annotations

import itertools
import os

_counter = itertools.count(1)


def new_id() -> str:
    """Return a name that no other request of this machine has at the moment."""
    return f"{os.getpid():x}-{next(_counter):x}"
