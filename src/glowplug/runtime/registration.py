"""Has TensorFlow register, ahead of a fork, what the first graph of a process would register.

Operations are registered by the first graph, and those that XLA can compile a second time by the pass that looks for
clusters. Both are kept for the process, and neither starts a thread.
"""

from __future__ import annotations

import ctypes
import os

_COMPILATION_KERNELS = "_ZN10tensorflow13XlaOpRegistry26RegisterCompilationKernelsEv"


def register(directory: str) -> None:
    """Register with the library in `directory`, which must be open. What a release does not export is left out."""
    library = ctypes.CDLL(os.path.join(directory, "libtensorflow_cc.so.2"))  # noqa: PTH118 - no pathlib in a standby
    library.TF_GetAllOpList.restype, library.TF_GetAllOpList.argtypes = ctypes.c_void_p, []
    library.TF_DeleteBuffer.restype, library.TF_DeleteBuffer.argtypes = None, [ctypes.c_void_p]
    library.TF_DeleteBuffer(library.TF_GetAllOpList())
    if hasattr(library, _COMPILATION_KERNELS):
        ctypes.CFUNCTYPE(None)((_COMPILATION_KERNELS, library))()
