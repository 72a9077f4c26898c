"""What a replica is told: how it runs models, which does not change, and which models, which may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from glowplug.core.errors import UsageError
from glowplug.serve.workers.batching import Batching


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """How a replica runs its models. `resident` bounds how many are loaded at a time; 0 is all of them, at once."""

    trust: bool = False
    standby: bool = True
    batching: bool = False
    max_batch_size: int = 64
    batch_timeout_s: float = 0.0
    resident: int = 0
    intra_op_threads: int = 0
    inter_op_threads: int = 0
    op_libraries: tuple[str, ...] = ()
    timeout_s: float = 30.0
    max_queue: int = 1000

    def to_json(self) -> dict[str, Any]:
        """Return the values as JSON takes them."""
        return {**asdict(self), "op_libraries": list(self.op_libraries)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ReplicaSettings:
        """Return what `to_json` wrote; a name or value that is none of these is a usage error."""
        try:
            made = cls(**{**document, "op_libraries": tuple(document.get("op_libraries", ()))})
        except TypeError as error:
            raise UsageError("a replica has no such setting", seen=error) from None
        if made.resident < 0 or made.max_batch_size < 1 or made.batch_timeout_s < 0 or made.timeout_s <= 0:
            raise UsageError("a setting of a replica is out of range", seen=made)
        return made

    @property
    def joined(self) -> Batching:
        """How calls are joined."""
        return Batching(self.batching, self.max_batch_size, self.batch_timeout_s)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """One model to serve: its name, the URL of its bytes, and the number that clients of TensorFlow Serving see."""

    name: str
    url: str
    version: int = 1


@dataclass(frozen=True, slots=True)
class Generation:
    """Which models are served. `number` rises with every change."""

    number: int
    models: tuple[ModelChoice, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the values as JSON takes them."""
        return {"number": self.number, "models": [asdict(one) for one in self.models]}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Generation:
        """Return what `to_json` wrote."""
        return cls(int(document["number"]), tuple(ModelChoice(**one) for one in document["models"]))
