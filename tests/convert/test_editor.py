"""What the passes over a graph stand on."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.tensorflow, pytest.mark.core]


def test_what_waited_for_a_placeholder_that_is_merged_waits_no_more() -> None:
    """As where two equal weights are stored once, and the end of a call waits for both."""
    from tensorflow.core.framework import graph_pb2

    from glowplug.convert.graph.editor import GraphEditor

    graph = GraphEditor(graph_pb2.GraphDef())
    for name in ("first", "second"):
        graph.create("Placeholder", name)
    graph.create("AddV2", "sum", ["first", "second"])
    graph.create("Identity", "end", ["sum", "^second", "^first"])
    graph.merge({"second": "first"})
    assert set(graph.nodes) == {"first", "sum", "end"}
    assert list(graph.nodes["sum"].input) == ["first", "first"]
    assert list(graph.nodes["end"].input) == ["sum", "^first"]
