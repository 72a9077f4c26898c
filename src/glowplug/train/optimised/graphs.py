"""Finds and keeps optimised graphs by what was traced.

What cannot be restored is traced in every process. Its graph is then known exactly, and so is what Grappler makes of
it: the same graph, arguments, settings and processor give the same result, which is taken from the store.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from glowplug.train.fingerprint.environment import environment_values
from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.notes import Notes
from glowplug.train.trace import collect, portable
from glowplug.train.trace.entries import Entries
from glowplug.train.trace.key import Key, from_texts, joined
from glowplug.train.trace.restore import DoesNotFitError, add_functions

from .attached import attach
from .digest import argument_texts, graph_digest, is_large

_COMPILED = "_XlaMustCompile"
_SEEN = "_glowplug_seen"


@dataclass(frozen=True, slots=True)
class Lookup:
    """What was found for a traced function: whether it is large, and the key under which a graph is missing."""

    large: bool = False
    missing: Key | None = None


class OptimisedGraphs:
    """The optimised graphs among the entries of a store. What goes wrong with one is said; it never stops a program."""

    def __init__(self, entries: Entries, notes: Notes, counts: Counter[str]) -> None:
        """`counts` has the number of graphs that were found, as `optimised`."""
        self._entries = entries
        self._notes = notes
        self._counts = counts

    def is_new(self, concrete: Any) -> bool:
        """Whether a traced function was not looked up yet."""
        return _SEEN not in concrete.__dict__

    def attach(self, concrete: Any) -> Lookup:
        """Have a traced function run its stored graph, if there is one."""
        setattr(concrete, _SEEN, True)
        with self._harmless():
            graph = concrete.graph.as_graph_def()
            if not is_large(graph):
                return Lookup()
            key = _key(concrete, graph)
            entry = self._entries.find(key)
            if entry is None:
                return Lookup(large=True, missing=key)
            attach(concrete._inference_function, add_functions(entry))
            self._counts["optimised"] += 1
        return Lookup(large=True)

    def keep(self, lookup: Lookup, concrete: Any, collected: collect.Collected) -> None:
        """Store the graph that the runtime made of a traced function when it ran first."""
        key = lookup.missing
        if key is None:
            return
        with self._harmless():
            functions = portable.to_functions(collect.graph_of(collected, concrete), concrete)
            plan = {
                "name": functions[-1].signature.name,
                "functions": len(functions),
                "operations": sorted({node.op for function in functions for node in function.node_def}),
            }
            info = {
                "function": f"optimised graph of {concrete.graph.name}",
                "label": f"the optimised graph of {concrete.graph.name}",
                "inputs": [],
                "nodes": len(functions[-1].node_def),
                "captures": len(concrete.graph.captures),
                "because": [],
            }
            blobs = {f"function {number}": each.SerializeToString() for number, each in enumerate(functions)}
            self._entries.keep(key, info, plan, blobs)

    @contextlib.contextmanager
    def _harmless(self) -> Iterator[None]:
        """The function has not run yet, or has run already: what goes wrong here is no matter of the program's."""
        try:
            yield
        except (NoKeyError, DoesNotFitError) as error:
            self._notes.tell(f"an optimised graph is not kept: {error}")
        except Exception as error:
            self._notes.warn(f"an optimised graph cannot be used: {type(error).__name__}: {error}")


def _key(concrete: Any, graph: Any) -> Key:
    attributes = concrete.function_def.attr  # TensorFlow's own copy: asking it for what it lacks would add it
    if _COMPILED in attributes and attributes[_COMPILED].b:
        raise NoKeyError("XLA compiles it")
    traced = Key({"graph": graph_digest(concrete, graph)})
    return joined(from_texts(environment_values()), from_texts({"arguments": argument_texts(concrete)}), traced)
