"""Keeps TensorFlow's two notices about the processor off stderr while its libraries open.

TensorFlow 2.21 writes them from static initialisers, before any log level can reach it. Whatever else is written
meanwhile is passed on. Nothing is held back once other threads run, which might start processes with this stderr, or
when the user set TF_CPP_MIN_LOG_LEVEL to 0.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NOTICES = (b"All log messages before absl::InitializeLog()", b"oneDNN custom operations are on")


@contextmanager
def held_back(*, threads: int = 1) -> Iterator[None]:
    """Hold the notices back during the block; `threads` is how many Python threads the caller knows of."""
    if threading.active_count() > threads or os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        yield
        return
    with tempfile.TemporaryFile() as aside:
        kept = os.dup(2)
        os.dup2(aside.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            aside.seek(0)
            for line in aside:
                if not any(notice in line for notice in _NOTICES):
                    os.write(2, line)
