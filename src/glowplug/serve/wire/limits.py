"""How much one request may hold. Everything is checked before memory is taken for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from glowplug.core.errors import RequestError

MAX_RANK = MAX_DEPTH = 32  # numpy's own limit before its release 2


@dataclass(frozen=True, slots=True)
class Limits:
    """`request_bytes` bounds the body of a REST request (lists of JSON take twenty times their text in memory),
    `tensor_bytes` what one tensor unfolds to."""

    request_bytes: int = 1 << 26
    tensor_bytes: int = 1 << 30


def checked_shape(where: str, sizes: Sequence[int], itemsize: int, limits: Limits) -> tuple[int, ...]:
    """Return the shape if a tensor of it may be made; else raise `RequestError`. `where` names the input."""
    if len(sizes) > MAX_RANK:
        raise RequestError(f"input {where!r} has too many dimensions", seen=len(sizes), remedy=f"at most {MAX_RANK}")
    if any(size < 0 for size in sizes):
        raise RequestError(f"input {where!r} has a negative dimension", seen=list(sizes))
    if math.prod(sizes) * max(itemsize, 1) > limits.tensor_bytes or any(size > limits.tensor_bytes for size in sizes):
        raise RequestError(
            f"input {where!r} is larger than this server takes",
            seen=f"shape {list(sizes)}",
            remedy=f"at most {limits.tensor_bytes} bytes a tensor (--max-tensor-bytes)",
        )
    return tuple(sizes)
