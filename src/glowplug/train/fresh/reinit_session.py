"""The twin of `reinitialize` for `tf.compat.v1` sessions: runs the initialisers that the graph already has.

`global_variables_initializer()` adds an operation each time it is called, and with it the session looks at the whole
graph anew. Fetching the variables' own initialisers adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from glowplug.core.errors import UsageError


def reinitialize_session(session: Any, variables: Sequence[Any] | None = None) -> None:
    """Give the variables of a session's graph, or those named, their first values again: slots and counters too.

    Random initialisers draw on: a graph with `tf.compat.v1.set_random_seed` gives the same sequence of rounds in
    each process, and each round its own weights.
    """
    import tensorflow as tf

    graph = session.graph
    if variables is None:
        variables = graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES)
    strangers = [variable.name for variable in variables if variable.graph is not graph]
    if strangers:
        raise UsageError(
            "variables of another graph cannot be initialised in this session",
            seen=", ".join(strangers[:8]),
            remedy="pass variables of session.graph, or none for all of them",
        )
    session.run([variable.initializer for variable in variables])
