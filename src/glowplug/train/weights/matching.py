"""Decides which entry is for which variable, by name or by position, and refuses a plan that does not fit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from glowplug.core.errors import WeightsError

from .entry import Binding, Entry, Plan
from .variables import LoadableVariable, without_counters

_SHOWN = 8


def by_name(targets: Sequence[LoadableVariable], entries: Mapping[str, Entry]) -> Plan:
    """Bind each variable to the entry that has its name."""
    bindings = tuple(Binding(one.variable, entries.get(one.name), one.required) for one in targets)
    used = {one.name for one in targets}
    return Plan(bindings, tuple(name for name in entries if name not in used))


def by_order(
    targets: Sequence[LoadableVariable],
    entries: Mapping[str, Entry],
    order: Sequence[str],
    random_state: Collection[str] = (),
    place: Callable[[str], str] = without_counters,
) -> Plan | None:
    """Bind in order where `place` finds the same in every pair of names, else return None.

    A second model of one architecture has other automatic names, in the same places. `order` lists the names of the
    file's entries as its model had them.
    """
    required = [name for name in order if name not in random_state]
    wanted = [one for one in targets if one.required]
    if [place(name) for name in required] != [place(one.name) for one in wanted]:
        return None
    pairs = dict(zip((one.name for one in wanted), required, strict=True))
    optional = [one for one in targets if not one.required]
    stored = [name for name in order if name in random_state]
    if [place(one.name) for one in optional] == [place(name) for name in stored]:
        pairs.update(zip((one.name for one in optional), stored, strict=True))
    return Plan(tuple(Binding(one.variable, _find(entries, pairs, one), one.required) for one in targets))


def _find(entries: Mapping[str, Entry], pairs: Mapping[str, str], target: LoadableVariable) -> Entry | None:
    name = pairs.get(target.name)
    return None if name is None else entries.get(name)


def check(plan: Plan, path: Path) -> None:
    """Raise `WeightsError` naming every variable that is missing, extra or different; nothing was touched yet."""
    missing = [one.variable.path for one in plan.bindings if one.required and one.entry is None]
    different = [
        f"{one.variable.path} is {_spec(one.variable)}, stored as {one.entry}"
        for one in plan.bindings
        if one.entry is not None and _spec(one.variable) != str(one.entry)
    ]
    faults = []
    for kind, names in (("missing", missing), ("extra", list(plan.extra)), ("different", different)):
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            faults.append(f"{len(names)} {kind} ({', '.join(names[:_SHOWN])}{more})")
    if faults:
        raise WeightsError(
            f"the weights of {path.name} do not fit the model",
            seen="; ".join(faults),
            remedy="build the model they were saved from; the model was not changed",
        )


def _spec(variable: object) -> str:
    shape = ", ".join(str(size) for size in variable.shape)  # type: ignore[attr-defined]
    return f"{variable.dtype}[{shape}]"  # type: ignore[attr-defined]
