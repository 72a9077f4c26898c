"""What `glowplug cache` does with the node cache: what it holds, whether it is whole, and how to make it smaller."""

from __future__ import annotations

from typing import Any

from glowplug.core.clock import human_bytes


def listing() -> tuple[dict[str, Any], list[str]]:
    """Return what the node cache holds, as JSON and in lines."""
    from glowplug.cli.output import ago
    from glowplug.store.node_cache import room
    from glowplug.store.node_cache.entries import entries
    from glowplug.store.node_cache.folder import open_folder
    from glowplug.store.settings import from_environment

    folder = open_folder()
    found, used = entries(folder), room.used_digests(folder)
    total, limit = sum(one.size for one in found), from_environment().cache_bytes
    limit = room.bound(folder) if limit is None else limit
    rows = [
        {"digest": one.digest, "url": one.origin, "bytes": one.size, "used_s": one.used_s, "in_use": one.digest in used}
        for one in found
    ]
    lines = [f"{folder.root}: {len(found)} downloads, {human_bytes(total)} of at most {human_bytes(limit)}"]
    for one in found:
        state = "in use" if one.digest in used else f"used {ago(one.used_s)}"
        lines.append(f"{one.digest[:12]}  {one.origin}  {human_bytes(one.size)}  {state}")
    return {"directory": str(folder.root), "bytes": total, "limit_bytes": limit, "entries": rows}, lines


def pruned(max_bytes: int | None, older_than_s: float | None) -> tuple[dict[str, Any], list[str]]:
    """Remove what no live process uses; return what was removed."""
    from glowplug.store.node_cache import room
    from glowplug.store.node_cache.folder import open_folder

    folder = open_folder()
    removed = room.prune(folder, max_bytes=max_bytes, older_than_s=older_than_s)
    room.sweep(folder)
    size = sum(one.size for one in removed)
    document = {"directory": str(folder.root), "removed": [one.digest for one in removed], "bytes": size}
    return document, [f"{folder.root}: removed {len(removed)} downloads, {human_bytes(size)}"]


def verified() -> tuple[dict[str, Any], list[str]]:
    """Read every byte of the node cache. What is damaged is fetched again when it is next asked for."""
    from glowplug.store.node_cache import entries
    from glowplug.store.node_cache.folder import open_folder

    folder = open_folder()
    rows, lines = [], []
    for one in entries.entries(folder):
        faults = entries.verify(folder, one.digest)
        if faults:
            entries.doubt(folder, one.digest)
        else:
            entries.mark_synced(folder, one.digest)
        rows.append({"digest": one.digest, "url": one.origin, "faults": faults})
        lines += [f"{one.digest[:12]}  {one.origin}  {fault}; it is fetched again when it is used" for fault in faults]
    damaged = sum(bool(row["faults"]) for row in rows)
    lines.append(f"{folder.root}: {len(rows) - damaged} of {len(rows)} downloads are whole")
    return {"directory": str(folder.root), "entries": rows, "damaged": damaged}, lines
