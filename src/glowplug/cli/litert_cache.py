"""What `glowplug cache` does with the packed weights of LiteRT models: what there is, and how to make it less."""

from __future__ import annotations

from typing import Any

from glowplug.core.clock import human_bytes

_NOWHERE = "no folder of packed weights yet"


def listing() -> tuple[dict[str, Any], list[str]]:
    """Return which packed weights are kept, as JSON and in lines."""
    from glowplug.cli.output import ago
    from glowplug.loader.engines import packed_weights

    found = packed_weights.kept()
    total = sum(one.size for one in found)
    rows = [{"name": one.path.stem, "bytes": one.size, "used_s": one.used_s} for one in found]
    place = str(packed_weights.place() or "")
    lines = [f"{place or _NOWHERE}: packed weights of {len(found)} LiteRT models, {human_bytes(total)}"]
    lines += [f"{one.path.stem[:12]}  {human_bytes(one.size)}  used {ago(one.used_s)}" for one in found]
    return {"directory": place, "bytes": total, "entries": rows}, lines


def pruned(max_bytes: int | None, older_than_s: float | None) -> tuple[dict[str, Any], list[str]]:
    """Remove packed weights; return what was removed. Whoever maps a removed file keeps it."""
    from glowplug.loader.engines import packed_weights

    removed = packed_weights.forget(max_bytes=max_bytes, older_than_s=older_than_s)
    size = sum(one.size for one in removed)
    place = str(packed_weights.place() or "")
    document = {"directory": place, "removed": [one.path.stem for one in removed], "bytes": size}
    return document, [
        f"{place or _NOWHERE}: removed the packed weights of {len(removed)} LiteRT models, {human_bytes(size)}"
    ]
