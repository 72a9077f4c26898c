"""`cluster.status`: the nodes of a cluster, what each has and how far it is, and what is served. It starts nothing."""

from __future__ import annotations

import contextlib
from typing import Any

from . import ledger
from .connection import NAMESPACE, connect
from .nodes.agents import Node, agent_name, ask

_ANSWER_S = 10.0


def status(address: str | None = None) -> dict[str, Any]:
    """Return nodes, with models and replicas, and applications, as plain values."""
    ray = connect(address)
    nodes, watched = [], []
    for one in sorted(ray.nodes(), key=lambda one: str(one["NodeID"])):
        shown = {"node": one["NodeID"], "address": one["NodeManagerAddress"], "alive": bool(one["Alive"])}
        nodes.append({**shown, "models": [], "replicas": [], "error": ""})
        if one["Alive"]:
            with contextlib.suppress(ValueError):  # nobody has asked anything of that node yet
                agent = ray.get_actor(agent_name(one["NodeID"]), namespace=NAMESPACE)
                watched.append(Node(one["NodeID"], one["NodeManagerAddress"], agent))
    answers = dict(zip([one.name for one in watched], ask(watched, "status", timeout_s=_ANSWER_S), strict=True))
    for node in nodes:
        answer = answers.get(node["node"])
        if isinstance(answer, dict):
            node |= {"models": answer["models"], "replicas": answer["replicas"], "glowplug": answer["glowplug"]}
        elif answer is not None:
            node["error"] = str(answer)
    return {"nodes": nodes, "applications": _applications()}


def _applications() -> list[dict[str, Any]]:
    from ray import serve

    states: dict[str, Any] = {}
    with contextlib.suppress(Exception):  # Ray Serve does not run
        states = {name: one.status for name, one in serve.status().applications.items()}
    found = []
    for name in ledger.applications():
        history = ledger.read(name)
        now = history[-1]
        found.append(
            {
                "application": name,
                "state": str(getattr(states.get(name), "value", states.get(name) or "NOT RUNNING")),
                "generation": now.generation.number,
                "models": now.generation.to_json()["models"],
                "can_roll_back": len(history) > 1,
            }
        )
    return found
