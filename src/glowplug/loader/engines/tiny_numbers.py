"""Numbers too small for the usual form of floating-point numbers count as zero, as they do in TensorFlow's threads.

TensorFlow has the processor take them for zero, as operands and as results. LiteRT leaves that to the thread that calls
it, and its own threads begin as the one that makes them is then. It shows: a number of 1e-40 is above zero or is not,
and the logarithm of a probability of 1e-40 is -92 or infinite.

The C library's way to keep and to set what floating-point arithmetic does is the same on Linux everywhere; where the
processor's own word lies in it is not. On a processor that is not known here nothing is changed, and `pack` finds what
that means for a model.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from types import TracebackType

from glowplug.core.records import Record

_ENVIRONMENT_BYTES = 64  # `fenv_t` is smaller on all of them


class _Word(Record):
    """Where the control word is in the C library's `fenv_t`, and which of its bits make tiny numbers zero."""

    offset: int
    bits: int


# MXCSR with FTZ and DAZ; FPCR with FZ.
_WORDS = {"x86_64": _Word(28, 0x8040), "aarch64": _Word(0, 1 << 24)}


class TinyIsZero:
    """A `with` block in which tiny numbers are zero, for this thread and for those that are started in it.

    It can be entered again and again, by one thread at a time.
    """

    __slots__ = ("_before", "_before_at", "_control", "_get", "_inside", "_inside_at", "_set", "_word")

    def __init__(self) -> None:
        self._before = ctypes.create_string_buffer(_ENVIRONMENT_BYTES)
        self._inside = ctypes.create_string_buffer(_ENVIRONMENT_BYTES)
        # Addresses are handed over in a third of the time that buffers take; this is part of every call of a model.
        self._before_at, self._inside_at = ctypes.addressof(self._before), ctypes.addressof(self._inside)
        self._get, self._set, self._word = _functions()
        self._control = ctypes.c_uint32.from_buffer(self._inside, self._word.offset)

    def __enter__(self) -> None:
        self._get(self._before_at)
        self._get(self._inside_at)
        self._control.value |= self._word.bits
        self._set(self._inside_at)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._set(self._before_at)


@functools.cache
def _functions() -> tuple[Callable[[int], object], Callable[[int], object], _Word]:
    word = _WORDS.get(os.uname().machine)
    process = ctypes.PyDLL(None)  # Python itself computes with the C library's functions
    get, put = getattr(process, "fegetenv", None), getattr(process, "fesetenv", None)
    if word is None or get is None or put is None:
        return _do_nothing, _do_nothing, _Word(0, 0)
    get.argtypes = put.argtypes = [ctypes.c_void_p]
    return get, put, word


def _do_nothing(environment: int) -> None:
    pass
