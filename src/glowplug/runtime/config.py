"""Session settings as the bytes of a `ConfigProto`, written without protobuf.

Field numbers are those of TensorFlow's `config.proto` and `rewriter_config.proto`, which never change.
"""

from __future__ import annotations

from dataclasses import dataclass

from glowplug.core.protobuf_wire import bytes_field, integer_field

# ConfigProto
_DEVICE_COUNT, _INTRA_OP, _INTER_OP, _SOFT_PLACEMENT, _GRAPH_OPTIONS = 1, 2, 5, 7, 10
# GraphOptions, OptimizerOptions, RewriterConfig
_OPTIMIZER_OPTIONS, _REWRITE_OPTIONS = 3, 10
_OPT_LEVEL, _LEVEL_L0 = 3, -1
_DISABLE_META_OPTIMIZER = 19


CALLERS_THREAD = -1


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """How a session runs. Zero threads means TensorFlow's own choice; `optimize` runs Grappler at the first call.

    TensorFlow keeps one pool of intra-op threads for the process: its size is that of the first session. With
    `CALLERS_THREAD` for `inter_op_threads`, operations run one after the other on the thread that calls.
    """

    intra_op_threads: int = 0
    inter_op_threads: int = 0
    optimize: bool = False

    def to_bytes(self) -> bytes:
        """Return the serialized `ConfigProto`."""
        graph = b""
        if not self.optimize:
            graph += bytes_field(_OPTIMIZER_OPTIONS, integer_field(_OPT_LEVEL, _LEVEL_L0))
            graph += bytes_field(_REWRITE_OPTIONS, integer_field(_DISABLE_META_OPTIMIZER, 1))
        no_gpu = bytes_field(1, b"GPU") + integer_field(2, 0)
        return (
            bytes_field(_DEVICE_COUNT, no_gpu)
            + integer_field(_INTRA_OP, self.intra_op_threads)
            + integer_field(_INTER_OP, self.inter_op_threads)
            + integer_field(_SOFT_PLACEMENT, 1)
            + bytes_field(_GRAPH_OPTIONS, graph)
        )
