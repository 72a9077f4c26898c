"""Replaces function calls by the bodies of the functions, so that a graph shows what it does.

Control flow with functions (`While`, `If`, `Case`) stays as it is. A function's side effects run whenever it is
called: `inline_calls` returns, for each call that was there, the nodes that a caller of it must run.
"""

from __future__ import annotations

from typing import Any

from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import op_def_registry

from glowplug.core.errors import UnsupportedModelError

from .editor import GraphEditor, attribute, canonical, is_control, node_of

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_DEEPEST = 64


def inline_calls(graph: GraphEditor, *, for_cpu: bool = True) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Inline every call in place; `for_cpu` prefers functions that are made for it, as TensorFlow does as a rule.

    Returns where the outputs of each call went (`call:1` -> tensor) and which nodes its side effects are.
    """
    if for_cpu:
        _choose_implementations(graph)
    outputs: dict[str, str] = {}
    effects: dict[str, set[str]] = {}
    for _ in range(_DEEPEST):
        calls = [node for node in graph.nodes.values() if _callee(node, graph)]
        if not calls:
            _close(outputs)
            _lift_effects(effects)
            return outputs, effects
        for call in calls:
            moved, effects[call.name] = _expand(graph, call)
            outputs.update(moved)
        graph.redirect(outputs)
        _redirect_control(graph, {call.name: effects[call.name] for call in calls}, outputs)
    raise UnsupportedModelError("the model's functions call each other without end", seen=f"{_DEEPEST} levels")


def _choose_implementations(graph: GraphEditor) -> None:
    """Call the functions that are made for the CPU where there are several that do the same.

    TensorFlow's optimiser chooses them so when a graph runs. Those that draw random numbers do not answer alike.
    """
    kinds: dict[str, tuple[bytes, str]] = {}
    made_for_cpu: dict[tuple[bytes, str], str] = {}
    for name, function in graph.library.items():
        purpose = attribute(function, "api_implements").s
        if purpose:  # gradients and what prepares them have the same purpose, and other arguments
            arguments = (function.signature.input_arg, function.signature.output_arg)
            kinds[name] = (purpose, str([[(one.type, one.type_attr) for one in part] for part in arguments]))
            if attribute(function, "api_preferred_device").s == b"CPU":
                made_for_cpu[kinds[name]] = name
    better = {name: made_for_cpu[kind] for name, kind in kinds.items() if kind in made_for_cpu}
    bodies = (function.node_def for function in graph.library.values())
    for node in [*graph.nodes.values(), *(node for body in bodies for node in body)]:
        if node.op in _CALLS and attribute(node, "f").func.name in better:
            node.attr["f"].func.name = better[node.attr["f"].func.name]


def _callee(node: Any, graph: GraphEditor) -> str | None:
    name: str = attribute(node, "f").func.name if node.op in _CALLS else node.op  # a name either way
    return name if name in graph.library else None


def _expand(graph: GraphEditor, call: Any) -> tuple[dict[str, str], set[str]]:
    """Put the body of a call into the graph. Returns where its outputs went and the nodes that must run."""
    function = graph.library[_callee(call, graph) or ""]
    arguments = [reference for reference in call.input if not is_control(reference)]
    waits = [reference for reference in call.input if is_control(reference)]
    parameters = [argument.name for argument in function.signature.input_arg]
    bound = dict(zip(parameters, arguments, strict=True))
    starts = {node.name: _output_starts(node, graph) for node in function.node_def}

    def outer(reference: str) -> str:
        """Translate a name of the body (`node:argument:index`, `parameter`, `^node`) to one of the graph."""
        name, _, rest = reference.removeprefix("^").partition(":")
        source = bound.get(name)
        if is_control(reference):
            return "^" + (node_of(source) if source else f"{call.name}/{name}")
        if source is not None:
            return str(source)
        argument, _, index = rest.partition(":")
        return canonical(f"{call.name}/{name}:{starts[name].get(argument, 0) + int(index or 0)}")

    del graph.nodes[call.name]
    for node in function.node_def:
        copy = node_def_pb2.NodeDef()
        copy.CopyFrom(node)
        copy.name = f"{call.name}/{node.name}"
        inside = any(node_of(reference) not in bound for reference in node.input)
        copy.input[:] = [outer(reference) for reference in node.input] + ([] if inside else waits)
        graph.add(_bind_attributes(copy, call))
    results = [outer(function.ret[result.name]) for result in function.signature.output_arg]
    moved = {canonical(f"{call.name}:{place}"): result for place, result in enumerate(results)}
    return moved, {f"{call.name}/{name}" for name in function.control_ret.values()}


def _output_starts(node: Any, graph: GraphEditor) -> dict[str, int]:
    """Return, for each named output of a node, the number of its first tensor."""
    function = graph.library.get(node.op)
    definition = function.signature if function else op_def_registry.get(node.op)
    if definition is None:
        raise UnsupportedModelError("the model uses an operation that is not registered", seen=node.op)
    starts, count = {}, 0
    for output in definition.output_arg:
        starts[output.name] = count
        if output.number_attr:
            count += node.attr[output.number_attr].i
        elif output.type_list_attr:
            count += len(node.attr[output.type_list_attr].list.type)
        else:
            count += 1
    return starts


def _bind_attributes(node: Any, call: Any) -> Any:
    """Replace attributes that a polymorphic function takes from its caller."""
    for key, value in node.attr.items():
        if value.WhichOneof("value") == "placeholder":
            node.attr[key].CopyFrom(call.attr[value.placeholder])
    return node


def _redirect_control(graph: GraphEditor, finals: dict[str, set[str]], outputs: dict[str, str]) -> None:
    """A control edge from a call waits for its side effects and its results."""
    results: dict[str, set[str]] = {}
    for source, target in outputs.items():
        results.setdefault(node_of(source), set()).add(node_of(target))
    for node in graph.nodes.values():
        if not any(is_control(r) and node_of(r) in finals for r in node.input):
            continue
        kept: dict[str, None] = {}
        for reference in node.input:
            name = node_of(reference)
            if is_control(reference) and name in finals:
                waits = finals[name] | results.get(name, set())
                kept.update(dict.fromkeys(f"^{wait}" for wait in sorted(waits)))
        data = [r for r in node.input if not is_control(r)]
        control = [r for r in node.input if is_control(r) and node_of(r) not in finals]
        node.input[:] = data + list(dict.fromkeys(control + list(kept)))


def _close(mapping: dict[str, str]) -> None:
    """Let each entry point to where its chain of moves ends."""
    for source, direct in mapping.items():
        seen, target = {source}, direct
        while target in mapping and target not in seen:
            seen.add(target)
            target = mapping[target]
        mapping[source] = target


def _lift_effects(effects: dict[str, set[str]]) -> None:
    """Expand effects that are themselves inlined calls."""
    for call, direct in effects.items():
        final: set[str] = set()
        queue = list(direct)
        while queue:
            name = queue.pop()
            if name in effects and name != call:
                queue.extend(effects[name])
            elif name not in final:
                final.add(name)
        effects[call] = final
