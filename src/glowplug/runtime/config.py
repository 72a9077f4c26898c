"""Session settings as the bytes of a `ConfigProto`, written without protobuf.

Field numbers are those of TensorFlow's `config.proto` and `rewriter_config.proto`, which never change.
"""

from __future__ import annotations

from dataclasses import dataclass

_VARINT, _BYTES = 0, 2

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
            graph += _message(_OPTIMIZER_OPTIONS, _integer(_OPT_LEVEL, _LEVEL_L0))
            graph += _message(_REWRITE_OPTIONS, _integer(_DISABLE_META_OPTIMIZER, 1))
        no_gpu = _message(1, b"GPU") + _integer(2, 0)
        return (
            _message(_DEVICE_COUNT, no_gpu)
            + _integer(_INTRA_OP, self.intra_op_threads)
            + _integer(_INTER_OP, self.inter_op_threads)
            + _integer(_SOFT_PLACEMENT, 1)
            + _message(_GRAPH_OPTIONS, graph)
        )


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value)


def _message(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(payload)) + payload
