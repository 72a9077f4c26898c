"""Begins a start with what takes longest: TensorFlow's library is opened while the rest goes on.

Opening it takes 0.2 s outside the interpreter lock, and `import numpy` most of a tenth of a second inside it. The
dynamic loader does one thing at a time, though: an extension module that is imported while the library is being opened
waits until that is done, and holds the interpreter lock meanwhile. So opening begins as soon as numpy's last extension
module is loaded; the Python half of numpy, and all our own modules, come while it goes on. LiteRT's library is opened
in the same way: it takes some milliseconds, of which a small model has few.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

_LAST_EXTENSION = "numpy.linalg._umath_linalg"  # of those that `import numpy` loads by itself
_LITERT_LIBRARY = "libpywrap_litert_common.so"  # what both of its interfaces are in

_opening: list[threading.Thread] = []  # at most one


def open_early() -> threading.Thread | None:
    """Import numpy, and begin to open the library on the way; return the thread that does, to be joined on any way out.

    Whoever needs the library calls `open_library`, which waits for it. A process that ended meanwhile would run the
    library's last code beside its first.
    """
    # These bring extension modules, which would wait for the library later.
    import binascii  # noqa: F401
    import ctypes  # noqa: F401
    import fcntl  # noqa: F401
    import hashlib  # noqa: F401
    import json  # noqa: F401
    import mmap  # noqa: F401

    from glowplug.runtime import library

    if library.is_open():
        return None
    if not _opening or not _opening[0].is_alive():
        _opening[:] = [threading.Thread(target=_open_quietly, name="glowplug-open", daemon=True)]
        import_numpy(_opening[0].start)
    return _opening[0]


def open_litert_early() -> threading.Thread | None:
    """Import numpy, if it is not there yet, and open LiteRT's library on the way; return the thread, to be joined."""
    if "numpy" in sys.modules:
        return None
    import ctypes  # these bring extension modules, as above
    import json  # noqa: F401
    import mmap  # noqa: F401

    from glowplug.core.disk.digest import sha256

    sha256(b"")
    try:
        import ai_edge_litert
    except ImportError:
        return None  # whoever opens the model says so

    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype, dlopen.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_int]
    path = os.fsencode(f"{ai_edge_litert.__path__[0]}/{_LITERT_LIBRARY}")
    # Where there is no such file, as in another release, LiteRT's modules open what they need when they are imported.
    thread = threading.Thread(target=dlopen, args=(path, os.RTLD_NOW | os.RTLD_LOCAL), daemon=True)
    import_numpy(thread.start)
    return thread


def import_numpy(when_extensions_are_loaded: Callable[[], None]) -> None:
    """Import numpy, and call back once, before its import has ended where that can be."""
    if "numpy" in sys.modules:
        when_extensions_are_loaded()
        return
    watch = _Watch(when_extensions_are_loaded)
    sys.meta_path.insert(0, watch)
    try:
        import numpy  # noqa: F401
    finally:
        sys.meta_path.remove(watch)
    watch.call_back()


class _Watch:
    """A finder that finds nothing: it learns which modules are there by now."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Callable[[], None] | None = callback

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Look, and leave the finding to others."""
        if _LAST_EXTENSION in sys.modules:
            self.call_back()

    def call_back(self) -> None:
        """Call, unless that was done already."""
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


def _open_quietly() -> None:
    """Run in the opening thread. What goes wrong is raised by the caller's own `open_library`."""
    from glowplug.runtime import library

    try:
        library.open_library()
    except Exception:  # the next call, in the caller's thread, fails in the same way and says so
        return
