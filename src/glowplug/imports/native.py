"""Opens TensorFlow's shared libraries on a thread of their own while Python code goes on.

`import tensorflow` opens them first of all and waits, holding the interpreter lock, while the loader relocates them
and their static initialisers register thousands of ops. Here that happens beside the unpacking of bytecode. Symbols
stay private to the libraries (never RTLD_GLOBAL: they carry a BoringSSL of their own) and functions are bound when
first called.
"""

from __future__ import annotations

import ctypes
import os
import threading

_LIBRARIES = (
    "libtensorflow_framework.so.2",
    "libtensorflow_cc.so.2",
    "python/lib_pywrap_tensorflow_common.so",
)


class Opening:
    """Libraries being opened."""

    def __init__(self, package: str) -> None:
        self._paths = [path for name in _LIBRARIES if os.path.exists(path := f"{package}/{name}")]  # noqa: PTH110
        self._thread = threading.Thread(target=self._open, name="glowplug-libraries", daemon=True)
        self._thread.start()

    def is_under_way(self) -> bool:
        """Say whether there is still something to wait for."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Return when all of them are open."""
        self._thread.join()

    def _open(self) -> None:
        # A foreign call: unlike `ctypes.CDLL` in some releases, it lets go of the interpreter lock.
        dlopen = ctypes.CDLL(None).dlopen
        dlopen.restype, dlopen.argtypes = ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_int)
        for path in self._paths:
            dlopen(os.fsencode(path), os.RTLD_LAZY | os.RTLD_LOCAL)  # a failure is met again, and told, by TensorFlow
