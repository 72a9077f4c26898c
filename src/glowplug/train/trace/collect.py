"""Gets the graph that TensorFlow's runtime really executes: after placement, inlining and Grappler.

Optimising ahead of time is not the same. `tf_optimizer.OptimizeGraph` does not know the shapes of the
variables behind the resource arguments, nor which outputs are control outputs of a function, and so it
rewrites differently from the runtime: results that differ in the last digits. Collecting the runtime's own
graph during the first step gives the very graph of that step, and Grappler runs once instead of twice.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from glowplug.train.fingerprint.errors import NoKeyError


class Collected:
    """Filled when the block that collects ends: the optimised graphs of all functions that ran
    first in it.
    """

    def __init__(self) -> None:
        self.graphs: list[Any] = []


def someone_else_collects() -> bool:
    """Whether the user is recording graphs (`tf.summary.trace_on`): collecting would take them away."""
    from tensorflow.python.ops import summary_ops_v2

    return getattr(summary_ops_v2, "_current_trace_context", None) is not None


_under_way: list[Collected] = []
_turn = threading.Lock()
_owners: list[int] = []  # the thread whose turn it is
_LONGEST_S = 10.0


def busy() -> bool:
    """Whether graphs are being collected at the moment, by us or by the user."""
    return bool(_under_way) or someone_else_collects()


@contextlib.contextmanager
def collecting() -> Iterator[Collected]:
    """Collect the optimised graph of every function that is instantiated inside the block.

    There is one collection for all threads: what one takes, another lacks, and might find somebody else's graph that
    looks like its own; what another instantiates meanwhile may fail. So one waits for another, but not for ever, as its
    step may wait for this one: then there is no collection.
    """
    from tensorflow.python.eager import context

    mine = any(owner == threading.get_ident() for owner in _owners)
    if mine or not _turn.acquire(timeout=_LONGEST_S):
        yield Collected()
        return
    _owners.append(threading.get_ident())
    current = context.context()
    collected = Collected()
    current.enable_graph_collection()
    _under_way.append(collected)
    try:
        yield collected
        # What goes wrong here must not lose the result of a step that has run: no graph is a reason not to keep it.
        with contextlib.suppress(Exception):
            metadata = current.export_run_metadata()
            if metadata is not None:
                collected.graphs = [each.post_optimization_graph for each in metadata.function_graphs]
    finally:
        _under_way.remove(collected)
        current.disable_graph_collection()
        _owners.clear()
        _turn.release()


def graph_of(collected: Collected, concrete: Any) -> Any:
    """Return the graph that belongs to a traced function, found by its arguments and results."""
    wanted_arguments = dict(enumerate(tensor.dtype.as_datatype_enum for tensor in concrete.inputs))
    wanted_results = dict(enumerate(tensor.dtype.as_datatype_enum for tensor in concrete.outputs))
    controls = set(concrete.function_def.control_ret.values())
    found = [
        graph
        for graph in collected.graphs
        if _types(graph, "_Arg").items() <= wanted_arguments.items()  # what no node uses is gone
        and _types(graph, "_Retval") == wanted_results
        and controls <= {node.name for node in graph.node}
    ]
    if len(found) != 1:
        raise NoKeyError(f"its optimised graph was seen {len(found)} times instead of once")
    return found[0]


def _types(graph: Any, op: str) -> dict[int, int]:
    return {node.attr["index"].i: node.attr["T"].type for node in graph.node if node.op == op}
