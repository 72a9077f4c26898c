"""Replace a function by one that records, so that callers cannot tell.

Runs in the target. A wrapper keeps the name, module, signature and attributes of what it wraps; AutoGraph is told
not to convert it. Something that is not there is skipped with a note: libraries differ between versions.
"""

from __future__ import annotations

import sys

from .recorder import Recorder

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Function = Callable[..., Any]

ROOM_WORDS = 1 << 15  # 256 KB and a little: CPython rounds the chunk up to 512 KB


def dress(wrapper: Any, original: Any) -> Any:
    """Make a wrapper look like what it wraps."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        try:
            setattr(wrapper, name, getattr(original, name))
        except (AttributeError, TypeError):
            pass
    wrapper.__dict__.update(getattr(original, "__dict__", {}))
    wrapper.__wrapped__ = original
    inspect = sys.modules.get("inspect")
    if inspect is not None and wrapper.__name__ == "__init__":
        # Keras compares constructors with getfullargspec, which does not follow `__wrapped__`. Only constructors:
        # functools.wraps copies this attribute from bound methods, where it would still say `self`.
        try:
            wrapper.__signature__ = inspect.signature(original)
        except (TypeError, ValueError):
            pass
    wrapper.autograph_info__ = {}  # AutoGraph calls what has this without converting it
    return wrapper


def roomy(function: Any) -> Any:
    """Let everything that a wrapper calls run in one piece of the interpreter's frame stack.

    CPython 3.11 and later cut that stack into chunks of 16 KB. A loop whose calls cross the end of a chunk maps and
    unmaps one for each call, and any frame that we add moves the end into another loop: some traces became a tenth
    slower. A frame that claims more than half of a large chunk leaves the rest of it to what it calls. The claim
    costs address space, not memory. `docs/decisions/0014-room-on-the-frame-stack.md` has the figures.
    """
    if sys.version_info >= (3, 11):  # noqa: UP036 - the interpreter of a target may be older
        function.__code__ = function.__code__.replace(co_stacksize=ROOM_WORDS)
    return function


class Patcher:
    """Applies wrappers to one library and notes what it could not find."""

    def __init__(self, recorder: Recorder, library: str) -> None:
        self.recorder = recorder
        self.library = library

    def replace(self, owner: Any, name: str, make: Callable[[Function], Function], *, quiet: bool = False) -> bool:
        """Replace `owner.name` by `make(original)`. `quiet` is for names that only some versions have."""
        original = owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name, None)
        if original is None:
            if not quiet:
                label = getattr(owner, "__qualname__", getattr(owner, "__name__", owner))
                self.recorder.note(f"this {self.library} has no {label}.{name}: what it does is not told apart")
            return False
        if isinstance(original, staticmethod):
            setattr(owner, name, staticmethod(dress(make(original.__func__), original.__func__)))
        elif isinstance(original, classmethod):
            setattr(owner, name, classmethod(dress(make(original.__func__), original.__func__)))
        else:
            setattr(owner, name, dress(make(original), original))
        return True
