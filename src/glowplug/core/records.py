"""Values that cross layers on the way of every load: frozen, made of named fields, equal where these are.

They are what `dataclasses` makes, and its `replace`, `asdict` and `fields` take them. But `dataclasses` compiles code
for each class at each import, a millisecond for two of them, and a manifest has a dozen: more than a small model has
time for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

if TYPE_CHECKING:
    from dataclasses import Field


class _Fields:
    """What `dataclasses` looks for in a class, made when it is first looked for."""

    def __get__(self, instance: object, owner: type[Record]) -> dict[str, Field[Any]]:
        from dataclasses import dataclass, field
        from functools import partial

        namespace: dict[str, Any] = {"__annotations__": {}}
        for name in owner.__match_args__:
            namespace["__annotations__"][name] = owner.__annotations__[name]
            if name in vars(owner):
                # Any default is handed out by a function: it may be an empty mapping, which nobody changes.
                namespace[name] = field(default_factory=partial(getattr, owner, name))
        alike: Any = dataclass(eq=False)(type(owner.__name__, (), namespace))
        found: dict[str, Field[Any]] = alike.__dataclass_fields__
        owner.__dataclass_fields__ = found
        return found


@dataclass_transform(frozen_default=True)
class Record:
    """The base of such values. Fields are the annotations of the class, with defaults where it has a value for them."""

    __match_args__: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    else:
        __dataclass_fields__ = _Fields()

        def __init_subclass__(cls):
            cls.__match_args__ = tuple(cls.__annotations__)

        def __init__(self, *values, **named):
            names, fields = self.__match_args__, self.__dict__
            fields.update(zip(names, values))  # noqa: B905 - a count that is wrong is told below
            if len(values) > len(names) or not (named.keys().isdisjoint(fields) and named.keys() <= set(names)):
                raise TypeError(f"{type(self).__name__} takes {', '.join(names)}, each once")
            fields.update(named)
            if len(fields) < len(names):
                for name in names:
                    if name not in fields:
                        if not hasattr(type(self), name):
                            raise TypeError(f"{type(self).__name__} lacks {name}")
                        fields[name] = getattr(type(self), name)

        def __setattr__(self, name, value):
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot assign to field {name!r}")

        def __delattr__(self, name):
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.__match_args__)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__qualname__}({shown})"
