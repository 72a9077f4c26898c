"""What a worker is told when it is forked, and what it tells back when it is ready: plain values with a JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from glowplug.core.manifest import Port, Signature, TensorSpec


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """Which model to load and how. `background` means that others are being served meanwhile.

    `brief` is for one of many workers of a model: nothing is run twice to be warm.
    """

    path: str
    kind: str  # "bundle", "saved_model", "tflite", or "parser", which has no path
    background: bool = False
    trust: bool = False
    intra_op_threads: int = 0
    inter_op_threads: int = 0
    op_libraries: tuple[str, ...] = ()
    tags: tuple[str, ...] = ("serve",)  # which graph of a SavedModel
    largest_batch: int = 0
    recorded: str = ""
    synthesize: bool = True
    brief: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the values as JSON takes them."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> WorkerSpec:
        """Return what `to_json` wrote."""
        lists = {name: tuple(document[name]) for name in ("op_libraries", "tags")}
        return cls(**{**document, **lists})


@dataclass(frozen=True, slots=True)
class WarmCall:
    """One kind of warm-up call that a worker ran: where it came from and how long its first and last run took."""

    signature: str
    source: str  # "packed", "recorded", "serving file" or "synthesised"
    rows: int
    runs: int
    first_ns: int
    last_ns: int
    error: str = ""
    code: str = ""  # of the error, where TensorFlow gave it


def signatures_to_json(signatures: Mapping[str, Signature]) -> dict[str, Any]:
    """Return signatures as JSON takes them."""

    def side(ports: Mapping[str, Port]) -> list[Any]:
        return [[name, port.spec.dtype, port.spec.shape, port.tensor] for name, port in ports.items()]

    return {name: [side(one.inputs), side(one.outputs), one.method] for name, one in signatures.items()}


def signatures_from_json(document: Mapping[str, Any]) -> dict[str, Signature]:
    """Return what `signatures_to_json` wrote."""

    def side(ports: list[Any]) -> dict[str, Port]:
        return {
            name: Port(TensorSpec(dtype, None if shape is None else tuple(shape)), tensor)
            for name, dtype, shape, tensor in ports
        }

    return {
        name: Signature(side(inputs), side(outputs), method=method)
        for name, (inputs, outputs, method) in document.items()
    }
