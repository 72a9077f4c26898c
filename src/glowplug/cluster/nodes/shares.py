"""Who reads which chunk from the origin, and whom to ask for it. Every node comes to the same answer by itself.

Nobody is in charge: a chunk's digest says which node reads it from the origin for all, and which node does so if that
one is gone. So each node asks others for all but its own share, each node sends each chunk of its share to all others,
and no request goes through a single place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

MOST_ASKED = 4  # nodes that are asked for a chunk, one after the other, before the origin is


def order(chunk: str, nodes: Sequence[str], holders: Collection[str] = ()) -> list[str]:
    """Return the nodes to ask for a chunk, in this order. `holders` have it all already, and come first."""
    first, rest = sorted(holders), sorted(set(nodes) - set(holders))
    return [*_rotated(chunk, first), *_rotated(chunk, rest)][:MOST_ASKED]


def _rotated(chunk: str, nodes: list[str]) -> list[str]:
    if not nodes:
        return []
    start = int(chunk[:16], 16) % len(nodes)
    return [*nodes[start:], *nodes[:start]]
