"""XLA: keep what it compiles, so that the next process does not compile it again, and say when it does not
pay.

TensorFlow reads `TF_XLA_FLAGS` once, when XLA is first used, so the flag is set before anything runs. It is a
flag of TensorFlow without documentation; if a version does not know it, XLA ignores it.
"""

from __future__ import annotations

import os
from pathlib import Path

_FLAG = "--tf_xla_persistent_cache_directory="
_MARK = "glowplug-xla"


def enable_persistent_cache(directory: Path) -> bool:
    """Point XLA at a folder for its compiled code; leave it alone if the user has chosen one. Say if it was
    set.
    """
    flags = os.environ.get("TF_XLA_FLAGS", "")
    if _FLAG in flags:
        return False
    folder = directory / _MARK
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["TF_XLA_FLAGS"] = f"{flags} {_FLAG}{folder}".strip()
    return True


def without_own_flags(flags: str) -> str:
    """Return `TF_XLA_FLAGS` as the user set it."""
    return " ".join(flag for flag in flags.split() if not (flag.startswith(_FLAG) and _MARK in flag))


def disable_persistent_cache() -> None:
    """Take the flag away again; XLA keeps what it has read."""
    flags = without_own_flags(os.environ.get("TF_XLA_FLAGS", ""))
    if flags:
        os.environ["TF_XLA_FLAGS"] = flags
    else:
        os.environ.pop("TF_XLA_FLAGS", None)
