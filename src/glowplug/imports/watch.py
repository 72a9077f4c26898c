"""Tells when a module is about to be imported and when it has been.

A finder at the front of `sys.meta_path` that finds nothing by itself: it asks the finders behind it, and has the loader
call back before and after the module's body runs. Loaders get the callback as an attribute of their own, which is
gone again when it is called, so that the module ends up with the loader it would have had.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the program's start 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    Before = Callable[[ModuleSpec], None]
    After = Callable[[ModuleType | None], None]


class Watcher:
    """Calls `before` with the spec that was found, and `after` with the module, or None where its body failed.

    `prepare` is called once, right before one of `names` is imported for the first time: what it watches counts.
    """

    def __init__(self, prepare: Callable[[], None] | None = None, names: Sequence[str] = ()) -> None:
        self._before: dict[str, list[Before]] = {name: [] for name in names}
        self._after: dict[str, list[After]] = {}
        self._asking: set[str] = set()
        self._prepare = prepare

    def install(self) -> None:
        """Go to the front of the finders."""
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Leave the finders."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def watch(self, name: str, *, before: Before | None = None, after: After | None = None) -> None:
        """Have these called, once, when the module `name` is imported; in the order in which they were given."""
        if before is not None:
            self._before.setdefault(name, []).append(before)
        if after is not None:
            self._after.setdefault(name, []).append(after)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a watched module through the other finders; leave every other module to them."""
        if (name not in self._before and name not in self._after) or name in self._asking:
            return None
        self._asking.add(name)
        try:
            spec: ModuleSpec | None = sys.modules["_frozen_importlib"]._find_spec(name, path, target)
        finally:
            self._asking.discard(name)
        if spec is not None and spec.loader is not None:
            self._surround(spec)
        return spec

    def _surround(self, spec: ModuleSpec) -> None:
        """Have the loader call back around the module's body. Not here and now: a finder runs under the import lock."""
        loader = spec.loader
        assert loader is not None
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            self._get_ready()
            before, after = self._before.pop(spec.name, []), self._after.pop(spec.name, [])
            for call in before:
                call(spec)
            done = None
            try:
                run(module)
                done = module
            finally:
                for call_after in after:
                    call_after(done)

        # In the name of importlib, which the interpreter leaves out of the tracebacks of failed imports.
        exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap>")
        loader.exec_module = exec_module  # type: ignore[method-assign]

    def _get_ready(self) -> None:
        prepare, self._prepare = self._prepare, None
        if prepare is None:
            return
        try:
            prepare()
        except Exception as error:  # this is the program's import statement, which must not fail for our reasons
            self._before.clear()
            self._after.clear()
            if sys.stderr is not None:
                print(f"glowplug: run: {type(error).__name__}: {error}; it is imported as usual", file=sys.stderr)
