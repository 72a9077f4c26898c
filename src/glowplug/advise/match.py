"""What a rule hands back, and the thresholds that all rules share.

A `Match` is a `Finding` without the parts that follow from the rule's name; the engine adds those.
`remedy.doc` stays empty in a match for the same reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from glowplug.core.profile import Remedy

# Below this a start is not worth an edit, and the noise of a busy machine is of the same size.
WORTH_NS = 200_000_000
WORTH_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Match:
    """A symptom seen in one profile. `evidence` holds plain JSON values; units are in the keys."""

    title: str
    evidence: Mapping[str, Any]
    remedy: Remedy
    saves_ns: int = 0
    saves_bytes: int = 0
    spans: tuple[int, ...] = field(default=())
