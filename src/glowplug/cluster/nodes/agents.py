"""Finds the agents of a cluster's nodes, and starts those that are missing. Runs wherever somebody asks something."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from glowplug.cluster.connection import NAMESPACE, require_ray
from glowplug.core.errors import ClusterError, OtherVersionError, UsageError
from glowplug.core.version import VERSION

_NAME = "glowplug-agent-"
_START_S = 60.0
_MOST_CALLS = 1000  # that wait in an agent at the same time
_AT_ONCE = 4  # threads that take its messages in


@dataclass(frozen=True, slots=True)
class Node:
    """A node that lives. `agent` is the handle of its actor."""

    name: str
    address: str
    agent: Any

    def __str__(self) -> str:
        return f"{self.address} ({self.name[:8]})"


def living(chosen: str | Sequence[str] = "all") -> list[Node]:
    """Return nodes with their agents: all that live, or those named by (the beginning of) their id or address."""
    ray = require_ray()
    alive = [(one["NodeID"], one["NodeManagerAddress"]) for one in ray.nodes() if one["Alive"]]
    if chosen != "all":
        wanted = [chosen] if isinstance(chosen, str) else list(chosen)
        unknown = [one for one in wanted if not any(_is(one, *node) for node in alive)]
        if unknown or not wanted:
            raise UsageError(
                "the cluster has no such node",
                seen=", ".join(unknown) or "none was named",
                remedy="`glowplug cluster status` shows them",
            )
        alive = [node for node in alive if any(_is(one, *node) for one in wanted)]
    found = [Node(name, address, agent_of(name)) for name, address in sorted(alive)]
    _require_same_version(ray, found)
    return found


def here() -> Node:
    """Return the node that this process runs on."""
    ray = require_ray()
    name = ray.get_runtime_context().get_node_id()
    return Node(name, ray.util.get_node_ip_address(), agent_of(name))


def agent_name(node: str) -> str:
    """Return the name by which Ray knows a node's agent."""
    return f"{_NAME}{node}"


def agent_of(node: str) -> Any:
    """Return the handle of a node's agent, which is started where there is none."""
    ray = require_ray()
    with contextlib.suppress(ValueError):  # there is none; to ask costs less than to offer one
        return ray.get_actor(agent_name(node), namespace=NAMESPACE)
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from .agent import Agent

    return (
        ray.remote(Agent)
        .options(
            name=agent_name(node),
            namespace=NAMESPACE,
            get_if_exists=True,
            lifetime="detached",
            num_cpus=0,
            max_concurrency=_MOST_CALLS,
            max_restarts=-1,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        .remote(node)
    )


def ask(found: Sequence[Node], method: str, *arguments: Any, timeout_s: float | None = None) -> list[Any]:
    """Call a method of several agents at once; what a node does not answer is a `ClusterError` in its place."""
    ray = require_ray()
    waiting = [getattr(node.agent, method).remote(*arguments) for node in found]
    ready = set(ray.wait(waiting, num_returns=len(waiting), timeout=timeout_s)[0]) if waiting else set()
    answers: list[Any] = []
    for node, reference in zip(found, waiting, strict=True):
        if reference not in ready:
            answers.append(ClusterError("a node does not answer", seen=node))
            continue
        try:
            answers.append(ray.get(reference))
        except ray.exceptions.RayError as error:
            answers.append(ClusterError("a node is gone, or its agent is", seen=f"{node}: {first_line(error)}"))
    return answers


def first_line(error: BaseException) -> str:
    """Return the part of an error of Ray's that says what happened."""
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return (lines or [type(cause).__name__])[0][:300]


def stop(found: Sequence[Node]) -> None:
    """End agents. What they fetched stays in the node caches."""
    ray = require_ray()
    for node in found:
        ray.kill(node.agent)


def _is(wanted: str, name: str, address: str) -> bool:
    return wanted == address or (len(wanted) >= 4 and name.startswith(wanted))


def _require_same_version(ray: Any, found: Sequence[Node]) -> None:
    for node, answer in zip(found, ask(found, "hello", timeout_s=_START_S), strict=True):
        if isinstance(answer, dict) and answer["glowplug"] != VERSION:
            raise OtherVersionError(
                "a node has another version of Glowplug",
                seen=f"{node}: {answer['glowplug']}, here {VERSION}",
                remedy="install the same version on every node, then `glowplug cluster down --agents`",
            )
