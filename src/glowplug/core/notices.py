"""Keeps what libraries say about themselves off stderr while they open: about the processor, devices, plugins.

TensorFlow 2.21 writes such notices from static initialisers, before any log level can reach it; LiteRT has a level that
its Python API cannot set. Whatever else is written meanwhile is passed on. Nothing is held back once other threads run,
which might start processes with this stderr, or when the user set TF_CPP_MIN_LOG_LEVEL to 0.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

TENSORFLOW = (b"All log messages before absl::InitializeLog()", b"oneDNN custom operations are on")
LITERT = (b"INFO: ", b"WARNING: [", "└ ".encode())


@contextmanager
def held_back(notices: tuple[bytes, ...] = TENSORFLOW, *, threads: int = 1) -> Iterator[None]:
    """Hold lines with the notices back during the block; `threads` is how many Python threads the caller knows of."""
    if _running_threads() > threads or os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        yield
        return
    with _nameless_file() as aside:
        kept = os.dup(2)
        os.dup2(aside.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            aside.seek(0)
            for line in aside:
                if not any(notice in line for notice in notices):
                    os.write(2, line)


def _running_threads() -> int:
    """Return how many threads of Python's there are. Nobody has started any without the module, which takes time."""
    threading = sys.modules.get("threading")
    return threading.active_count() if threading is not None else 1


def _nameless_file() -> IO[Any]:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("stderr", os.MFD_CLOEXEC), "w+b")
    import tempfile

    return tempfile.TemporaryFile()
