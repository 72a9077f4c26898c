"""What every bundle has, whatever its engine: its warm-up requests, and where it came from. Needs no TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from glowplug.bundle import layout
from glowplug.bundle.warmup import Request, encode
from glowplug.bundle.writer import BundleWriter
from glowplug.core.manifest import Signature
from glowplug.core.version import VERSION

from .source.sources import Located


def add_warmup(writer: BundleWriter, requests: Sequence[Request], signatures: Mapping[str, Signature]) -> None:
    """Store the requests, one file each."""
    for place, request in enumerate(requests):
        dtypes = {name: port.spec.dtype for name, port in signatures[request.signature].inputs.items()}
        writer.add_file(f"{layout.WARMUP}{place:04}.json", encode(request, dtypes))


def provenance(source: Located, **more: str) -> dict[str, Any]:
    """Return where a bundle came from, and from which releases."""
    return {
        "source": source.kind,
        "name": source.name,
        "glowplug": VERSION,
        "packed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **more,
    }
