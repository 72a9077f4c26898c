"""A GraphDef that can be edited: nodes by name, who reads what, and what a set of tensors needs.

Tensor names are kept in one form: `node` for output 0, `node:1` for others, `^node` for a control edge.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from tensorflow.core.framework import attr_value_pb2, graph_pb2, node_def_pb2

_NO_VALUE = attr_value_pb2.AttrValue()


def node_of(reference: str) -> str:
    """Return the node of an input reference: `a` for `a`, `a:1` and `^a`."""
    return reference.removeprefix("^").partition(":")[0]


def is_control(reference: str) -> bool:
    """Say whether an input reference is a control edge."""
    return reference.startswith("^")


def canonical(reference: str) -> str:
    """Return the short form of a tensor name: `a:0` becomes `a`."""
    return reference.removesuffix(":0")


def attribute(node: Any, key: str) -> Any:
    """Return an attribute, empty where the node has none. Reading `node.attr[key]` would add it."""
    return node.attr.get(key, _NO_VALUE)


class GraphEditor:
    """The nodes of one graph and its function library."""

    def __init__(self, graph: graph_pb2.GraphDef) -> None:
        self.versions = graph.versions
        self.library = {function.signature.name: function for function in graph.library.function}
        self._gradients = list(graph.library.gradient)
        self.nodes: dict[str, Any] = {}
        for node in graph.node:
            self.add(node)

    def add(self, node: Any) -> Any:
        """Add a node, its inputs brought into the short form."""
        node.input[:] = [canonical(reference) for reference in node.input]
        self.nodes[node.name] = node
        return node

    def create(self, op: str, name: str, inputs: Iterable[str] = (), **attributes: Any) -> Any:
        """Add a new node under a name that is free, derived from `name`. Attributes are `AttrValue`s."""
        node = node_def_pb2.NodeDef(op=op, name=self.free_name(name), input=list(inputs))
        for key, value in attributes.items():
            node.attr[key].CopyFrom(value)
        return self.add(node)

    def free_name(self, name: str) -> str:
        """Return `name`, or `name_1`, `name_2`, ... if it is taken."""
        candidate, count = name, 0
        while candidate in self.nodes:
            count += 1
            candidate = f"{name}_{count}"
        return candidate

    def consumers(self) -> dict[str, list[Any]]:
        """Return, for each node, the nodes that read it through data or control edges (a snapshot)."""
        found: dict[str, list[Any]] = {name: [] for name in self.nodes}
        for node in self.nodes.values():
            for source in {node_of(reference) for reference in node.input}:
                found.setdefault(source, []).append(node)
        return found

    def slice(self, references: Iterable[str]) -> set[str]:
        """Return the names of all nodes that the given tensors or nodes depend on, themselves included."""
        seen: set[str] = set()
        queue = deque(node_of(reference) for reference in references)
        while queue:
            name = queue.popleft()
            if name in seen or name not in self.nodes:
                continue
            seen.add(name)
            queue.extend(node_of(reference) for reference in self.nodes[name].input)
        return seen

    def keep(self, names: set[str]) -> None:
        """Drop every node that is not in `names`."""
        self.nodes = {name: node for name, node in self.nodes.items() if name in names}

    def redirect(self, mapping: dict[str, str]) -> None:
        """Let every reader of a tensor read another one instead. Control edges stay as they are."""
        if not mapping:
            return
        for node in self.nodes.values():
            for place, reference in enumerate(node.input):
                if is_control(reference):
                    continue
                target, seen = reference, set()
                while target in mapping and target not in seen:
                    seen.add(target)
                    target = mapping[target]
                node.input[place] = target

    def merge(self, sources: dict[str, str]) -> None:
        """Remove placeholders for which others stand from now on. Who waited for one, a given value, need not wait."""
        self.redirect(sources)
        self.drop_control_edges(set(sources))
        self.keep(set(self.nodes) - set(sources))

    def drop_control_edges(self, sources: set[str]) -> None:
        """Remove the control edges that leave the given nodes."""
        for node in self.nodes.values():
            kept = [r for r in node.input if not (is_control(r) and node_of(r) in sources)]
            if len(kept) != len(node.input):
                node.input[:] = kept

    def in_order(self) -> Iterator[Any]:
        """Yield the nodes so that each comes after what it reads; v1 loops are cut at NextIteration."""
        done: set[str] = set()
        for root in list(self.nodes):
            stack = [(root, False)]
            while stack:
                name, ready = stack.pop()
                if name not in self.nodes or name in done:
                    continue
                if ready:
                    done.add(name)
                    yield self.nodes[name]
                    continue
                stack.append((name, True))
                node = self.nodes[name]
                if node.op not in ("NextIteration", "RefNextIteration"):
                    stack.extend((source, False) for r in node.input if (source := node_of(r)) not in done)

    def to_graph_def(self) -> graph_pb2.GraphDef:
        """Return the graph with the part of the library that it reaches."""
        graph = graph_pb2.GraphDef(versions=self.versions, node=self.nodes.values())
        needed = self.reached_functions()
        graph.library.function.extend(f for name, f in self.library.items() if name in needed)
        graph.library.gradient.extend(g for g in self._gradients if g.function_name in needed)
        return graph

    def reached_functions(self) -> set[str]:
        """Return the names of the library functions that the nodes call, directly or through others."""
        reached: set[str] = set()
        queue: deque[Any] = deque(self.nodes.values())
        while queue:
            node = queue.popleft()
            for name in called_functions(node):
                if name in self.library and name not in reached:
                    reached.add(name)
                    queue.extend(self.library[name].node_def)
        return reached


def called_functions(node: Any) -> list[str]:
    """Return the functions a node names: in its attributes, or as its operation."""
    names = [node.op]
    for value in node.attr.values():
        kind = value.WhichOneof("value")
        if kind == "func":
            names.append(value.func.name)
        elif kind == "list":
            names.extend(function.name for function in value.list.func)
    return names
