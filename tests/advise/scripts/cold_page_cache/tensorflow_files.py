"""The files of the installed TensorFlow, evicted from the page cache or read into it."""

import importlib.util
import os
from pathlib import Path

CHUNK = 4 << 20


def files():
    root = Path(importlib.util.find_spec("tensorflow").origin).parent
    return [path for path in root.rglob("*") if path.is_file()]


def evict():
    for path in files():
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def read_ahead():
    for path in files():
        with path.open("rb") as file:
            while file.read(CHUNK):
                pass
