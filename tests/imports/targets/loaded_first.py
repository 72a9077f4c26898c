"""Imports modules that are put off, each as the first one: loaded_first.py write LOADED | read LOADED FOUND STEP NAME …

`write` lists the modules of TensorFlow that its import has loaded; `read` imports each STEPth of those that it finds
missing, and those that are named, in a fork of its own, and writes how many there were and which failed, as JSON.
"""

import importlib
import json
import os
import sys
import zlib
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the forks below are made by a process with one thread

import keras  # noqa: F401 - what is looked at is the import of both
import tensorflow  # noqa: F401


def import_in_a_fork(name: str) -> str:
    readable, writable = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            importlib.import_module(name)
        except BaseException as error:
            os.write(writable, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writable)
    with open(readable, "rb") as stream:  # noqa: PTH123 - a descriptor
        told = stream.read()
    _, status = os.waitpid(pid, 0)
    return told.decode() or (f"status {status}" if status else "")


loaded = Path(sys.argv[2])
if sys.argv[1] == "write":
    loaded.write_text(json.dumps(sorted(name for name in sys.modules if name.startswith("tensorflow."))))
else:
    step, *named = sys.argv[4:]
    missing = [name for name in json.loads(loaded.read_text()) if name not in sys.modules]
    asked = [name for name in missing if name in named or zlib.crc32(name.encode()) % int(step) == 0]
    told = {name: import_in_a_fork(name) for name in asked}
    Path(sys.argv[3]).write_text(json.dumps([len(asked), {name: text for name, text in told.items() if text}]))
