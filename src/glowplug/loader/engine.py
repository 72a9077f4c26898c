"""What every engine offers: run one signature on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from glowplug.core.manifest import Signature


class Engine(Protocol):
    """A model in memory."""

    signatures: Mapping[str, Signature]
    notes: list[str]

    def run(self, signature: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Answer one call; safe from many threads at once."""

    def close(self) -> None:
        """Free everything. Closing twice is harmless."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may choose when loading. Zero threads means TensorFlow's own choice."""

    trust: bool = False
    op_libraries: tuple[str, ...] = ()
    intra_op_threads: int = 0
    inter_op_threads: int = 0
