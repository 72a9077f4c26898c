"""TensorFlow's own clock for graph optimisation. Runs in the target.

Grappler runs inside TensorFlow's C++ code, where no Python hook sees it. TensorFlow counts the microseconds of each
pass in a two-label counter. The library exports the function that returns that counter, and the C API has functions
that read a cell of one. Nothing is enabled or configured: the counters run anyway.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any

GETTER = "_ZN10tensorflow7metrics27GetGraphOptimizationCounterEv"
PASSES = (
    "model_pruner",
    "function_optimizer",
    "common_subgraph_elimination",
    "debug_stripper",
    "constant_folding",
    "shape_optimizer",
    "remapper",
    "layout",
    "generic_layout_optimizer",
    "memory_optimizer",
    "arithmetic_optimizer",
    "auto_parallel",
    "loop_optimizer",
    "dependency_optimizer",
    "scoped_allocator_optimizer",
    "pin_to_host_optimizer",
    "auto_mixed_precision",
    "auto_mixed_precision_mkl",
    "auto_mixed_precision_onednn_bfloat16",
    "implementation_selector",
    "tfg_optimizer",
)


class GraphOptimizationClock:
    """Reads how long Grappler, and each of its passes, has run in this process so far."""

    def __init__(self, directory: str) -> None:
        import ctypes

        framework = _loaded(ctypes, directory, "libtensorflow_framework.so.2")
        wrapper = _loaded(ctypes, directory, "libtensorflow_cc.so.2")
        getter = getattr(framework, GETTER)
        getter.restype = ctypes.c_void_p
        # TFE_MonitoringCounter2 is a struct of one owning pointer to the counter: a pointer to a pointer will do.
        self._holder = ctypes.c_void_p(getter())
        self._get_cell = wrapper.TFE_MonitoringGetCellCounter2
        self._get_cell.restype = ctypes.c_void_p
        self._get_cell.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
        self._read = wrapper.TFE_MonitoringCounterCellValue
        self._read.restype = ctypes.c_int64
        self._read.argtypes = [ctypes.c_void_p]
        self._byref = ctypes.byref
        self._total = self._cell("*")
        self._passes: dict[str, Any] = {}

    def _cell(self, name: str) -> Any:
        return self._get_cell(self._byref(self._holder), b"Grappler", name.encode())

    def total_us(self) -> int:
        """Return the microseconds that Grappler has taken so far."""
        return int(self._read(self._total))

    def passes_us(self) -> dict[str, int]:
        """Return the same for each pass that has run."""
        if not self._passes:
            self._passes = {name: self._cell(name) for name in PASSES}
        values = {name: int(self._read(cell)) for name, cell in self._passes.items()}
        return {name: value for name, value in values.items() if value}


def _loaded(ctypes: Any, directory: str, name: str) -> Any:
    """Return a library that the process has loaded already. It is never loaded here."""
    return ctypes.CDLL(os.path.join(directory, name), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)


def open_clock() -> GraphOptimizationClock | None:
    """Return the clock, or None where this TensorFlow has none."""
    package = sys.modules.get("tensorflow")
    spec = getattr(package, "__spec__", None)
    origin = getattr(spec, "origin", None)
    if not origin:
        return None
    try:
        return GraphOptimizationClock(os.path.dirname(origin))
    except (OSError, AttributeError):
        return None
