"""Other contents for memory that nobody has written: an answer that is made of such memory shows itself.

With some instructions TensorFlow's convolution of an input that is too small for it answers whatever lay in its memory.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

_M_PERTURB = -6
_FREED = 0x80  # what is allocated is filled with the complement, 0x7f: as a number, one near the largest


@contextlib.contextmanager
def other_memory() -> Iterator[None]:
    """Have all memory that this process is given inside the block filled, where its C library can do so."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        yield
        return
    mallopt(_M_PERTURB, _FREED)
    try:
        yield
    finally:
        mallopt(_M_PERTURB, 0)
