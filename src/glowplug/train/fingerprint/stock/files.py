"""The part of a key that stands for stock code: the stamps of the files that it was loaded from.

What a process has loaded is what stood on the disk then. So a process that finds stock code changed since it began, or
since its first key, has no key at all.
"""

from __future__ import annotations

import sys

from glowplug.core.disk.installed import process_began_ns, read_installed
from glowplug.train.fingerprint.errors import NoKeyError

from .trusted import PACKAGES

_first: dict[str, dict[str, str]] = {}


def stock_stamps() -> dict[str, str]:
    """Return the stamp of each package of stock code; raise `NoKeyError` where disk and memory may differ."""
    names = PACKAGES - {"google", "glowplug"} | {"google.protobuf"}  # Glowplug has the number of its format
    if "tf_keras" not in sys.modules:
        names -= {"tf_keras"}
    found = read_installed(sorted(names))
    before = _first.get("stamps")
    if before is None and found.newest_ns > process_began_ns():
        raise NoKeyError("files of TensorFlow, Keras or a package they use changed after the program began")
    for name, stamp in found.digests.items():
        if before is not None and before.get(name, stamp) != stamp:
            raise NoKeyError(f"files of {name} changed while the program runs")
    _first["stamps"] = {**found.digests, **(before or {})}
    return {name: stamp[:16] for name, stamp in found.digests.items()}
