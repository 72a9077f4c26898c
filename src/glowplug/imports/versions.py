"""Which TensorFlow is installed, and whether the acceleration of its import was verified with it."""

from __future__ import annotations

import os
import re

# Releases with which tests/imports/test_compatibility.py was run.
VERIFIED = ("2.16", "2.17", "2.18", "2.19", "2.20", "2.21", "2.22")

_METADATA = re.compile(
    r"(?:tensorflow(?:_cpu|_cpu_aws|_intel|_rocm|_macos)?|tf_nightly(?:_cpu)?)-(\d+\.\d+)[^-]*\.dist-info"
)


def release_of(package: str) -> str:
    """Return `2.21` for the TensorFlow in a folder, from the metadata beside it; empty where it cannot be told.

    Where two flavours are installed over each other nobody knows which files are there: that cannot be told either.
    """
    try:
        names = os.listdir(os.path.dirname(package))  # noqa: PTH120, PTH208 - before the program; pathlib is not free
    except OSError:
        return ""
    found = {match[1] for name in names if (match := _METADATA.fullmatch(name))}
    return found.pop() if len(found) == 1 else ""
