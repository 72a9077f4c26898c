"""What a standby was built from. Its components are named, so that a mismatch can be explained.

Everything that Python, TensorFlow or Keras reads while it starts or is imported is in it. The client computes it at
each start, so it costs well under a millisecond. Installed packages are looked at by the standby itself (`freshness`).
What a process cannot take over from another (`confinement`) is in it too. It is compared, sent and shown, so it holds
no secret: see `glowplug.core.disclosure`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from glowplug.core.disclosure import disclosed
from glowplug.core.version import VERSION

from . import confinement

PREFIXES = (
    "TF_", "TF2_", "XLA_", "KERAS_", "TFDS_", "AUTOGRAPH_", "PYTHON", "LC_", "LD_", "OMP_", "KMP_", "MKL_", "OPENBLAS_",
    "GOTO_", "BLIS_", "DNNL_", "ONEDNN_", "NPY_", "NUMPY_", "CUDA_", "NVIDIA_", "ROCR_", "HIP_", "GRPC_", "ABSL_",
    "PROTOCOL_BUFFERS_", "HDF5_", "MALLOC_", "GLIBC_", "JAX_", "TORCH_",
)  # fmt: skip
NAMES = ("HOME", "LANG", "LANGUAGE", "XDG_CACHE_HOME", "TEST_TMPDIR")

# The pools are made again in the child, with the caller's values.
THREAD_COUNTS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that may be read while Python, TensorFlow or Keras start."""
    return {
        name: value
        for name, value in variables.items()
        if (name.startswith(PREFIXES) or name in NAMES) and name not in THREAD_COUNTS
    }


def search_path() -> list[str]:
    """Return `sys.path` without the entry that stands for the program itself."""
    return list(sys.path) if getattr(sys.flags, "safe_path", False) or sys.flags.isolated else sys.path[1:]


def components(kind: str, preload: tuple[str, ...]) -> dict[str, str]:
    """Return every component by name."""
    executable = os.stat(sys.executable)
    found = {
        "kind": kind,
        "preload": ",".join(preload),
        "glowplug": f"{VERSION} {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}",
        "interpreter": f"{sys.executable} {sys.version} {executable.st_mtime_ns} {executable.st_size}",
        "prefix": sys.prefix,
        "flags": f"{tuple(sys.flags)} {sorted(sys._xoptions.items())} {sys.warnoptions}",
        "path": os.pathsep.join(search_path()),
        "keras.json": _keras_settings(),
        **confinement.lasting(),
    }
    found.update((f"environment {name}", disclosed(name, value)) for name, value in environment(os.environ).items())
    return found


def digest(parts: Mapping[str, str]) -> str:
    """Return the name that stands for these components."""
    from _blake2 import blake2b  # `hashlib` would load OpenSSL (5 ms)

    state = blake2b(digest_size=10)
    for name in sorted(parts):
        for text in (name, parts[name]):
            data = text.encode("utf-8", "surrogateescape")
            state.update(b"%d:" % len(data) + data)
    return str(state.hexdigest())


def difference(mine: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Name the components that differ."""
    names = sorted(name for name in {*mine, *other} if mine.get(name) != other.get(name))
    return ", ".join(name.removeprefix("environment ") for name in names)


def _keras_settings() -> str:
    home = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    try:
        status = os.stat(os.path.join(home, "keras.json"))
    except OSError:
        return "none"
    return f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_size} {status.st_ino}"
