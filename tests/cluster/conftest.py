"""Fixtures of the tests with Ray, which `make test-cluster` runs in an environment and a network of their own."""

from __future__ import annotations

import importlib.util
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.__main__ import ALONE
from tests.cluster.nodes import Nodes, running
from tests.components import relay
from tests.components.processes import free_ports
from tests.components.relay import Relay
from tests.components.seaweedfs import SeaweedFS

MB = 1 << 20


def _why_not() -> str:
    if importlib.util.find_spec("ray") is None:
        return "Ray is not installed: make test-cluster"
    return "" if os.environ.get(ALONE) else "Ray would leave loopback: make test-cluster"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = _why_not()
    if reason:
        for item in items:
            if item.get_closest_marker("cluster") is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def origin(seaweedfs_server: SeaweedFS) -> Iterator[Relay]:
    """The way to a storage, which counts; this process and the nodes find it by their environment."""
    with relay.relaying(seaweedfs_server.s3_port) as found, pytest.MonkeyPatch.context() as patch:
        for name, value in seaweedfs_server.environment(found.port).items():
            patch.setenv(name, value)
        patch.setenv("GLOWPLUG_RETRIES", "2")
        yield found


@pytest.fixture(scope="session")
def three_nodes(tmp_path_factory: pytest.TempPathFactory, origin: Relay) -> Iterator[Nodes]:
    with running(tmp_path_factory.mktemp("three"), 3) as nodes:
        yield nodes


@pytest.fixture(scope="session")
def push(tmp_path_factory: pytest.TempPathFactory, origin: Relay) -> Callable[[int], tuple[str, Path]]:
    """Push a folder of so many MB that nobody has seen yet; return its URL, pinned, and the folder."""
    from glowplug.store.push import push as push_folder

    numbers = iter(range(1000))

    def made(size_mb: int) -> tuple[str, Path]:
        number = next(numbers)
        folder = tmp_path_factory.mktemp("pushed") / f"model-{number}"
        folder.mkdir()
        (folder / "weights.bin").write_bytes(random.Random(number).randbytes(size_mb * MB))
        (folder / "bundle.json").write_text(f'{{"some": "manifest", "number": {number}}}')
        url = f"s3://models/cluster/{number}/model"
        return f"{url}@{push_folder(folder, url).digest}", folder

    return made


@pytest.fixture(scope="session")
def ports() -> tuple[int, int]:
    """Where Ray Serve takes HTTP and gRPC."""
    first, second = free_ports(2)
    return first, second


@pytest.fixture(scope="session")
def serving(three_nodes: Nodes, ports: tuple[int, int]) -> None:
    """Ray Serve on the cluster: it is started once, and ends with the cluster."""
    from ray import serve
    from ray.serve.config import gRPCOptions

    from glowplug.cluster.replicas.rpc import SERVICER_FUNCTIONS

    serve.start(
        proxy_location="HeadOnly",
        http_options={"host": "127.0.0.1", "port": ports[0]},
        grpc_options=gRPCOptions(port=ports[1], grpc_servicer_functions=list(SERVICER_FUNCTIONS)),
    )
