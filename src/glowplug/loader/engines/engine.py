"""What every engine offers: run one signature on arrays. An engine is a module here and one in `convert`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from glowplug.core import manifest
from glowplug.core.manifest import Signature
from glowplug.core.records import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

# By name: the module beside this one, and the class in it that takes a `Bundle` and `Options`. Only what is used loads.
ENGINES: Mapping[manifest.Engine, str] = {
    "native": "native:NativeEngine",
    "litert": "litert:LiteRTEngine",
    "savedmodel": "savedmodel:SavedModelEngine",
}


class Engine(Protocol):
    """A model in memory."""

    signatures: Mapping[str, Signature]
    notes: list[str]

    def run(self, signature: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Answer one call; safe from many threads at once."""

    def close(self) -> None:
        """Free everything. Closing twice is harmless."""


class Options(Record):
    """What a caller may choose when loading. Zero threads means the engine's own choice."""

    trust: bool = False
    op_libraries: tuple[str, ...] = ()
    intra_op_threads: int = 0
    inter_op_threads: int = 0
