"""The Python of the page about clusters, one block after the other, on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.components.relay import Relay
from tests.docs.blocks import python_blocks

pytestmark = [pytest.mark.cluster, pytest.mark.tensorflow]

PAGE = "docs/how-to/cluster.md"


def test_the_page_runs(serving: None, bundle: Callable[[str], Path], origin: Relay) -> None:
    from ray import serve

    from glowplug.loader.origin import publish

    publish(bundle("dense"), "s3://models/zoo/dense/1")
    blocks = [block for block in python_blocks() if block.page == PAGE]
    assert len(blocks) == 2
    names: dict[str, Any] = {}
    try:
        for block in blocks:
            exec(compile(block.text, block.name, "exec"), names)
        assert set(serve.status().applications) >= {"glowplug", "mine"}
    finally:
        for name in ("glowplug", "mine"):
            serve.delete(name)
