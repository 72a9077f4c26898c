"""Has LiteRT pack the weights of a model in a process of its own: where the disk is full, LiteRT ends its process."""

from __future__ import annotations

import os
import subprocess
import sys

_LIMIT_S = 600.0
_CODE = (
    "import sys; sys.path[:] = {path!r}; from glowplug.loader.engines.litert_interfaces import pack_weights; "
    "pack_weights(*sys.argv[1:])"
)


def pack_weights_apart(model: int, packed: str) -> None:
    """Have the packed weights of the model behind a descriptor written to a file; raise `OSError` where that fails."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CODE.format(path=sys.path), f"/proc/self/fd/{model}", packed],
            pass_fds=(model,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OSError(0, f"LiteRT takes more than {_LIMIT_S:.0f} s to pack them") from None
    if done.returncode:
        free = os.statvfs(os.path.dirname(packed))  # noqa: PTH120 - a string
        raise OSError(0, f"LiteRT failed to pack them, with {free.f_bavail * free.f_frsize >> 20} MB free on the disk")
