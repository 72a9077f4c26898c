"""Whether TensorFlow survives AMX where the processor announces it. Child processes find out, since they may die of it.

Some virtual machines announce AMX, grant the permission to use it and trap on its first instruction. Others execute
every instruction that is tried alone, and TensorFlow dies with SIGILL on a bfloat16 matrix product all the same. So
first the instructions are tried, which takes milliseconds, and where they work, such a product. This module changes
nothing: whoever starts TensorFlow may set `CURE`. It is the first child's program too, so its own imports are of the
standard library only.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Literal

Answer = Literal["absent", "works", "traps", "unknown"]

CURE = ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")  # the widest set of instructions below AMX that oneDNN knows

_TRAPS = (-signal.SIGILL, -signal.SIGSEGV, -signal.SIGBUS)
_PATIENCE_SECONDS = 60.0
_NOT_GRANTED, _NOT_EXECUTABLE = 3, 4  # exit codes of the child

_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA = 158, 0x1023, 18
_INSTRUCTIONS = bytes.fromhex(
    "c4e2784907"  # ldtilecfg [rdi]
    "c4e27b49c0c4e27b49c8c4e27b49d0"  # tilezero tmm0, tmm1, tmm2
    "c4e26a5cc1"  # tdpbf16ps tmm0, tmm1, tmm2
    "c4e27849c0"  # tilerelease
    "c3"  # ret
)
_TILES = bytes(
    [1, *[0] * 15, *[64, 0] * 3, *[0] * 26, *[16] * 3, *[0] * 13]
)  # palette 1; three tiles of 16 rows, 64 bytes


@functools.cache
def answer() -> Answer:
    """Return whether AMX can be used: asked once a process, of children, and only where it is announced."""
    from glowplug.runtime.fingerprint import cpu_features
    from glowplug.runtime.library import is_installed

    if "amx_tile" not in cpu_features():
        return "absent"
    found = ask([sys.executable, "-I", "-S", __file__])
    return ask(_multiplying()) if found == "works" and is_installed() else found


def ask(child: Sequence[str]) -> Answer:
    """Run a child that uses AMX, and return what its end says."""
    environment = {name: value for name, value in os.environ.items() if name != CURE[0]}
    try:
        code = subprocess.run(
            child,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE_SECONDS,
            check=False,
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    if code in _TRAPS:
        return "traps"
    if code == _NOT_GRANTED:  # nor to oneDNN, which does without
        return "absent"
    return "works" if code == 0 else "unknown"


def needs_cure(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether TensorFlow would die in this environment: AMX traps, and oneDNN has not been told to leave it."""
    chosen = environment.get(CURE[0], "").upper()
    return (not chosen or chosen in ("ALL", "DEFAULT") or "AMX" in chosen) and answer() == "traps"


def _multiplying() -> list[str]:
    """Return the command of a child that finds what this process finds, and multiplies."""
    path = [os.path.abspath(each or ".") for each in sys.path]  # noqa: PTH100 - not worth pathlib
    code = f"import sys; sys.path[:] = {path!r}; from glowplug.runtime.amx import multiply; multiply()"
    return [sys.executable, "-I", "-S", "-c", code]


def multiply() -> None:
    """Let TensorFlow multiply matrices of bfloat16; they must not be too small for AMX (child)."""
    import numpy as np

    from glowplug.runtime import graphdef
    from glowplug.runtime.config import SessionConfig
    from glowplug.runtime.graph import Graph
    from glowplug.runtime.session import Session
    from glowplug.runtime.tensor import Tensor

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    float32, bfloat16 = graphdef.FLOAT32, graphdef.BFLOAT16
    product = graphdef.graph(
        graphdef.node("x", "Placeholder", dtype=float32),
        graphdef.node("rounded", "Cast", "x", SrcT=float32, DstT=bfloat16),
        graphdef.node("product", "MatMul", "rounded", "rounded", T=bfloat16),
        graphdef.node("y", "Cast", "product", SrcT=bfloat16, DstT=float32),
    )
    x = Tensor.from_array(np.ones((64, 64), np.float32), "float32")
    Session(Graph(product), SessionConfig()).prepare(["x:0"], ["y:0"]).run([x])
    os._exit(0)


def _ask_for_permission() -> bool:
    """As oneDNN does (child)."""
    libc = ctypes.CDLL(None)
    return int(libc.syscall(_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA)) == 0


def _execute() -> int:
    """Execute AMX instructions; returns the exit code, where it returns (child)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core dump of a death that is expected
    try:
        code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return _NOT_EXECUTABLE
    code.write(_INSTRUCTIONS)
    tiles = ctypes.create_string_buffer(_TILES, len(_TILES))
    entry = ctypes.addressof(ctypes.c_char.from_buffer(code))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(entry)(ctypes.addressof(tiles))
    return 0


if __name__ == "__main__":
    sys.exit(_execute() if _ask_for_permission() else _NOT_GRANTED)
