"""Writes what `help()` shows for the names of the API, as digests in JSON: documentation.py FILE [STEP]

With STEP only about each STEPth name is asked about. An object that has several names is rendered once.
"""

import hashlib
import json
import pydoc
import re
import sys
import zlib
from pathlib import Path

from reachable import names

ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def rendered(value: object) -> str:
    try:
        text = pydoc.render_doc(value, renderer=pydoc.plaintext)
    except Exception as error:
        return f"raises {type(error).__name__}: {ADDRESS.sub('', str(error))}"
    return f"{len(text)} characters, {hashlib.sha256(ADDRESS.sub('', text).encode()).hexdigest()[:16]}"


step = int(sys.argv[2]) if len(sys.argv) > 2 else 1
shown: dict[int, str] = {}
seen: dict[str, str] = {}
for where, value in list(names()):  # all of them first: TensorFlow's lazy modules change when they are rendered
    if zlib.crc32(where.encode()) % step == 0:
        if id(value) not in shown:
            shown[id(value)] = rendered(value)
        seen[where] = shown[id(value)]
Path(sys.argv[1]).write_text(json.dumps(seen))
