"""`--record-warmup`: keeps a bounded sample of real requests, as a file that warms the next start.

The file is TensorFlow Serving's own form of warm-up requests, so that it can be moved to either server.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

from .log import Log
from .models.versions import Version
from .wire.array_types import dtype_name
from .wire.calls import Arrays
from .wire.messages import serving
from .wire.tensor_proto import encode

MAX_REQUESTS = 20
MAX_BYTES = 1 << 24


class Recorder:
    """Writes the first requests of each shape, up to a bound for each model."""

    def __init__(self, folder: Path, log: Log) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self._log = folder, log
        self._broken = False
        self._seen: dict[str, set[object]] = {}
        self._bytes: dict[str, int] = {}

    def offer(self, version: Version, signature: str, inputs: Arrays) -> None:
        """Keep a request if it is of a new kind and there is room. Whatever goes wrong, it is answered all the same."""
        try:
            self._offer(version, signature, inputs)
        except Exception as error:
            self._broken = True
            self._log.event("not_recorded", error=str(error) or type(error).__name__)

    def _offer(self, version: Version, signature: str, inputs: Arrays) -> None:
        seen = self._seen.setdefault(version.model, set())
        key = (version.number, signature, tuple((name, array.shape) for name, array in sorted(inputs.items())))
        if self._broken or key in seen or len(seen) >= MAX_REQUESTS:
            return
        seen.add(key)
        if sum(array.nbytes for array in inputs.values()) > MAX_BYTES:  # before it is written as a message
            return
        record = self._record(version, signature, inputs)
        size = self._bytes.get(version.model, 0) + len(record)
        if size > MAX_BYTES:
            return
        first = version.model not in self._bytes
        self._bytes[version.model] = size
        with (self._folder / f"{version.model}.requests").open("wb" if first else "ab") as stream:
            _write_record(stream, record)

    @staticmethod
    def _record(version: Version, signature: str, inputs: Arrays) -> bytes:
        log = serving("PredictionLog")()
        request = log.predict_log.request
        request.model_spec.name, request.model_spec.signature_name = version.model, signature
        for name, array in inputs.items():
            request.inputs[name].CopyFrom(encode(array, dtype_name(array)))
        data: bytes = log.SerializeToString()
        return data


def _write_record(stream: BinaryIO, record: bytes) -> None:
    head = struct.pack("<Q", len(record))
    stream.write(head + struct.pack("<I", _masked(head)) + record + struct.pack("<I", _masked(record)))


def _masked(data: bytes) -> int:
    """Return TensorFlow's checksum of a record: CRC-32C, rotated and shifted."""
    import google_crc32c

    crc = int(google_crc32c.value(data))
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
