"""What the front end and a mirror tell each other: an order as JSON, and a small file beside the links."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .config import Policy

STATUS = ".status.json"


@dataclass(frozen=True, slots=True)
class Order:
    """What a mirror is told. `poll_seconds` of 0 means that it ends when all has arrived; `labelled` versions stay."""

    url: str
    folder: str
    policy: Policy = field(default_factory=Policy)
    labelled: tuple[int, ...] = ()
    poll_seconds: float = 1.0
    trust: bool = False
    trusted_keys: tuple[str, ...] = ()
    require_signature: bool = False

    def dump(self) -> str:
        """Return the order as the process takes it."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Order:
        """Return what `dump` wrote."""
        document: dict[str, Any] = json.loads(text)
        policy = document["policy"]
        document["policy"] = Policy(policy["kind"], policy["count"], tuple(policy["versions"]))
        lists: dict[str, Any] = {name: tuple(value) for name, value in document.items() if isinstance(value, list)}
        return cls(**{**document, **lists})


@dataclass(frozen=True, slots=True)
class Status:
    """What is not here yet, and why, by the number of the version; `error` is about all of the URL."""

    error: str = ""
    waiting: Mapping[int, str] = field(default_factory=dict)


def read_status(folder: Path) -> Status:
    """Return what a mirror last said; nothing where it has not said anything yet."""
    try:
        document = json.loads((folder / STATUS).read_bytes())
        return Status(document["error"], {int(number): why for number, why in document["waiting"].items()})
    except (OSError, ValueError, KeyError, TypeError):
        return Status()
