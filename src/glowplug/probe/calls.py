"""Make a call tree of what was seen of the user's own code, for the time that was theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from glowplug.core.profile import Span, UserCall, exclusive_ns

from .events import Image

SMALLEST_SHARE = 0.01  # of all looks: what is below it is left out of the tree, and in its caller's time

Frame = tuple[str, str, int, int]  # file, function, its first line, the line it was at
Key = tuple[str, str, int]


@dataclass(slots=True)
class _Node:
    """A function below its callers."""

    looks: int = 0
    lines: Counter[int] = field(default_factory=Counter)
    below: dict[Key, _Node] = field(default_factory=dict)


def user_calls(images: Sequence[Image], main: Sequence[Span], origin_ns: int) -> tuple[UserCall, ...]:
    """Return the tree of the root's main thread; empty where nobody looked.

    Looks that fell into another phase are left out: it says more about that time. The others share the time of the
    phase `user_code` evenly.
    """
    root = _Node()
    stacks: dict[tuple[int, int], list[Frame]] = {}
    looks: list[tuple[int, list[Frame]]] = []
    for image in images:
        for number, frames in image.facts("calls_stack"):
            stacks[image.pid, number] = [(file, name, first, line) for file, name, first, line in frames]
        if main and image.pid == main[0].pid:
            looks += [(at - origin_ns, stacks.get((image.pid, number), [])) for at, number in image.facts("calls_look")]
    for frames in _in_user_code(looks, main):
        _count(root, frames)
    if not root.looks:
        return ()
    own_ns = exclusive_ns(main)
    total_ns = sum(own_ns[span.id] for span in main if span.phase == "user_code")
    return tuple(_walk(root, 0, total_ns / root.looks, root.looks * SMALLEST_SHARE))


def _in_user_code(looks: Sequence[tuple[int, list[Frame]]], main: Sequence[Span]) -> Iterator[list[Frame]]:
    """Yield the frames of each look at a time whose innermost span is the user's."""
    stack: list[Span] = []
    following = 0
    for at_ns, frames in sorted(looks, key=lambda look: look[0]):
        while following < len(main) and main[following].start_ns <= at_ns:
            stack.append(main[following])
            following += 1
        stack = [span for span in stack if span.end_ns > at_ns]
        if frames and stack and stack[-1].phase == "user_code":
            yield frames


def _count(root: _Node, frames: Sequence[Frame]) -> None:
    root.looks += 1
    node = root
    for file, function, first_line, line in frames:
        node = node.below.setdefault((file, function, first_line), _Node())
        node.looks += 1
        node.lines[line] += 1


def _walk(node: _Node, depth: int, ns_each: float, smallest: float) -> Iterator[UserCall]:
    for (file, function, _), below in sorted(node.below.items(), key=lambda item: (-item[1].looks, item[0])):
        if below.looks < smallest:
            continue
        shown = [each for each in below.below.values() if each.looks >= smallest]
        own = below.looks - sum(each.looks for each in shown)
        (line, _), *_ = below.lines.most_common(1)
        site = f"{file}:{line}" if file else ""
        yield UserCall(depth, function, site, round(below.looks * ns_each), round(own * ns_each))
        yield from _walk(below, depth + 1, ns_each, smallest)
