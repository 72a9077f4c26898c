"""`cluster.preload`: a model on every node, for which the origin is read about once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from glowplug.cluster.connection import connect
from glowplug.core.errors import ClusterError, GlowplugError
from glowplug.store.location import parse
from glowplug.store.node_cache.entries import Held
from glowplug.store.pull import obtain
from glowplug.store.sharing import Description, find

from .agent import Outcome
from .agents import Node, ask, here, living

_ASKED = 16  # other nodes that one which lacks a model asks for it
_ANSWER_S = 10.0


@dataclass(frozen=True, slots=True)
class Preloaded:
    """What became of a model on the nodes. `url` is pinned: it names these very bytes."""

    url: str
    size: int
    outcomes: tuple[Outcome, ...]

    @property
    def origin_bytes(self) -> int:
        """What was read from the origin for all nodes together."""
        return sum(one.origin_bytes for one in self.outcomes)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The nodes that do not have it."""
        return tuple(one for one in self.outcomes if one.error is not None)


def preload(url: str, *, nodes: str | Sequence[str] = "all", address: str | None = None) -> Preloaded:
    """Have what a URL names in the node caches of a cluster: of all its nodes, or of those named.

    With all, those that join later get it too. A node that cannot have it is reported in the result, and the others go
    on. Raises where nobody can reach it.
    """
    ray = connect(address)
    found = living(nodes)
    done = seed(url, found)
    if nodes == "all":
        from .keeper import keeper

        ray.get(keeper().keep.remote(done.url, [node.name for node in found]))
    return done


def seed(url: str, found: Sequence[Node]) -> Preloaded:
    """Have what a URL names on these nodes."""
    others = living() if len(found) < _ASKED else []
    around = [*found, *(node for node in others if node.name not in {one.name for one in found})]
    digest = parse(url).digest
    if digest is not None:  # whoever has it knows what it is; the origin need not be asked
        has = ask(around, "has", digest, timeout_s=_ANSWER_S)
        around = [node for _, node in sorted(zip(has, around, strict=True), key=lambda pair: pair[0] is not True)]
    description, told, read = describe(url, around)
    peers = {node.name: node.agent for node in found}
    beside = [node for node in around if node.name not in peers]
    known = [
        *zip(found, ask(found, "expect", description, timeout_s=_ANSWER_S), strict=True),
        *zip(beside, ask(beside, "has", description.digest, timeout_s=_ANSWER_S), strict=True),
    ]
    held = []
    for node, has in known:
        if has is True:
            held.append(node.name)
            peers[node.name] = node.agent
    outcomes = []
    answers = ask(found, "seed", description, peers, held)
    for node, answer in zip(found, answers, strict=True):
        outcome = answer if isinstance(answer, Outcome) else Outcome(node.name, description.digest, error=answer)
        if node.name == told:
            outcome = replace(outcome, origin_bytes=outcome.origin_bytes + read)
        outcomes.append(outcome)
    return Preloaded(f"{description.url}@{description.digest}", description.tree.size, tuple(outcomes))


def describe(url: str, found: Sequence[Node]) -> tuple[Description, str, int]:
    """Find out what a URL names, from the first node that can reach it; return that node too, and what it read."""
    parse(url)  # what is no URL is said here, and once
    error: GlowplugError | None = None
    for node in found:
        (answer,) = ask([node], "describe", url)
        if isinstance(answer, tuple):
            return answer[0], node.name, answer[1]
        error = error or answer
    raise error or ClusterError("the cluster has no node that lives", seen=url)


def bring(url: str) -> tuple[Held, Path]:
    """Have what a URL names on this node, and hold it; return where it is. Runs in a replica, or in an agent.

    What is here already is used without a word to anybody. Else other nodes are asked before the origin is.
    """
    location = parse(url)
    held = find(location.digest) if location.digest is not None else None
    if held is None:
        me = here()
        others = [node for node in living() if node.name != me.name]
        found = [me, *random.sample(others, min(len(others), _ASKED))]
        description, _, _ = describe(url, found)
        held_by = ask(found, "has", description.digest, timeout_s=_ANSWER_S)
        holders = [node.name for node, has in zip(found, held_by, strict=True) if has is True]
        peers = {node.name: node.agent for node in found}
        (outcome,) = ask([me], "seed", description, peers, holders)
        if not isinstance(outcome, Outcome) or outcome.error is not None:
            raise outcome.error if isinstance(outcome, Outcome) and outcome.error else outcome
        held = find(description.digest)
        url = f"{description.url}@{description.digest}"
    if held is not None:
        held.release()
    held = obtain(url)  # which knows about signatures
    return held, held.path
