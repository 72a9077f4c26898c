"""A cluster of Ray's on this machine, each of whose nodes has a node cache and a standby of its own, as hosts have."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STORE_BYTES = 200 << 20


def wait_until(holds: Callable[[], bool], what: str, timeout_s: float = 180.0) -> None:
    """Return once something holds, of which Ray has no event to wait for."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout_s:.0f} s: {what}"
        time.sleep(0.05)


class Nodes:
    """A running cluster. `folders` are the nodes' node caches, by the order in which they joined."""

    def __init__(self, folder: Path, environment: dict[str, str], processors: int = 8) -> None:
        from ray.cluster_utils import Cluster

        self._folder, self._environment, self._processors = folder, environment, processors
        self.cluster = Cluster()
        self.raylets: list[Any] = []

    @property
    def address(self) -> str:
        """Where it is found."""
        return str(self.cluster.address)

    @property
    def ids(self) -> list[str]:
        """The nodes, in the order in which they joined."""
        return [one.node_id for one in self.raylets]

    def cache(self, number: int) -> Path:
        """Return the node cache of a node."""
        return self._folder / f"cache-{number}"

    def join(self, count: int = 1, **environment: str) -> None:
        """Let nodes join."""
        for _ in range(count):
            number = len(self.raylets)
            variables = {
                **self._environment,
                "GLOWPLUG_NODE_CACHE_DIR": str(self.cache(number)),
                "GLOWPLUG_STANDBY_DIR": str(self._folder / f"standby-{number}"),
                **environment,
            }
            (self._folder / f"standby-{number}").mkdir(mode=0o700)
            options: dict[str, Any] = {"env_vars": variables, "object_store_memory": STORE_BYTES}
            options |= {"num_cpus": self._processors, "include_dashboard": False}
            self.raylets.append(self.cluster.add_node(**options))

    def kill(self, number: int) -> None:
        """End a node and all its processes at once."""
        self.cluster.remove_node(self.raylets[number], allow_graceful=False)

    def stop_standbys(self) -> None:
        """End the standbys of all nodes, which outlive them."""
        for place in self._folder.glob("standby-*"):
            command = [sys.executable, "-m", "glowplug", "standby", "stop", "--all"]
            subprocess.run(command, env={**os.environ, "GLOWPLUG_STANDBY_DIR": str(place)}, capture_output=True)


@contextlib.contextmanager
def running(folder: Path, count: int, **environment: str) -> Iterator[Nodes]:
    """A cluster of so many nodes, to which this process is connected, for the length of a block."""
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    folder.mkdir(parents=True, exist_ok=True)
    before = ray.get_runtime_context().gcs_address if ray.is_initialized() else None
    ray.shutdown()  # a process has one connection at a time
    nodes = Nodes(folder, environment)
    try:
        nodes.join(count)
        _connect(nodes.address)
        yield nodes
    finally:
        with contextlib.suppress(Exception):
            from ray import serve

            serve.shutdown()
        ray.shutdown()
        nodes.cluster.shutdown()
        nodes.stop_standbys()
        if before is not None:
            _connect(before)


def _connect(address: str) -> None:
    import ray

    ray.init(address=address, namespace="glowplug", log_to_driver=False, logging_level="ERROR")
