"""Writes or reads pickles of the API's classes and functions: pickles.py write FILE, pickles.py read FILE FOUND

The reader imports TensorFlow and asks for nothing else before it unpickles, as a worker does; then it looks each name
up and writes which of them the pickle did not give, as JSON.
"""

import inspect
import json
import pickle
import sys
from pathlib import Path

import keras  # noqa: F401 - both are imported before anything is read
import tensorflow  # noqa: F401

path = Path(sys.argv[2])
if sys.argv[1] == "write":
    from reachable import names

    written: dict[str, bytes] = {}
    for where, value in names():
        if isinstance(value, type) or inspect.isroutine(value):
            try:
                data = pickle.dumps(value)
            except Exception:
                continue
            written[where] = data
    path.write_bytes(pickle.dumps(written))
else:
    read: dict[str, object] = {}
    failed: dict[str, str] = {}
    for where, data in pickle.loads(path.read_bytes()).items():
        try:
            read[where] = pickle.loads(data)
        except Exception as error:
            failed[where] = f"{type(error).__name__}: {error}"
    from reachable import names

    named = dict(names())
    failed |= {where: "another object" for where, value in read.items() if named.get(where) is not value}
    Path(sys.argv[3]).write_text(json.dumps([len(read), failed]))
