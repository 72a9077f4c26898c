"""What this machine is, as far as it decides which optimised graph suits it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from glowplug.core.manifest import Fingerprint

# The instruction sets for which TensorFlow and oneDNN have kernels of their own.
_FEATURE_PREFIXES = ("avx", "amx", "fma", "f16c", "sse4", "sve", "asimd", "bf16", "i8mm")
_VARIABLES = ("TF_ENABLE_ONEDNN_OPTS",)  # decides which fused kernels the optimiser may use


def fingerprint(tensorflow_version: str) -> Fingerprint:
    """Return the fingerprint of this machine with that TensorFlow."""
    environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return Fingerprint(tensorflow_version, cpu_features(), environment)


def cpu_features() -> tuple[str, ...]:
    """Return the instruction sets that the processor announces; where the system does not tell, its architecture."""
    try:
        with Path("/proc/cpuinfo").open(encoding="ascii", errors="replace") as stream:
            for line in stream:
                key, _, value = line.partition(":")
                if key.strip() in ("flags", "Features"):
                    return tuple(sorted({f for f in value.split() if f.startswith(_FEATURE_PREFIXES)}))
    except OSError:
        pass
    return (platform.machine(),)
