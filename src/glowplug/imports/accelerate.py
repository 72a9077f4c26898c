"""Makes the import of TensorFlow and Keras faster in a program that knows nothing of it.

Nothing happens until the program imports one of them. Then, if this release of TensorFlow was verified, its shared
libraries are opened on a thread while the bytecode of TensorFlow's modules is unpacked from one file; parts of the API
are put off; and the work on signatures, annotations and places that nobody reads is left out.
`finder`, `native`, `pages`, `signatures`, `references` and `registries` each hold one of these; this module decides and
puts them together.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from time import perf_counter_ns
from types import ModuleType

from . import versions
from .bytecode import archive, collect, finder
from .ledger import Ledger, seconds
from .left_out import references, registries, signatures
from .put_off import deferred, pages, parts
from .put_off.settings import Settings
from .watch import Watcher
from .window import Collector, Undo, Window

_PART = "imports"
_TENSORFLOW, _KERAS = "tensorflow", "keras"
_PATCHES: dict[str, Callable[[ModuleType], Callable[[], Undo]]] = {
    "tensorflow.python.framework.registry": registries.in_registry,
    "tensorflow.python.util.tf_decorator": signatures.in_decorators,
    "tensorflow.python.util.tf_inspect": signatures.in_inspection,
}


class Acceleration:
    """The acceleration of one process. `meanwhile` is called while TensorFlow's libraries are being opened."""

    def __init__(self, watcher: Watcher, ledger: Ledger, meanwhile: Callable[[], None]) -> None:
        self._ledger = ledger
        self._meanwhile = meanwhile
        self._window = Window()
        self._active: bool | None = None
        self._release = ""
        self._archive: archive.Archive | None = None
        self._code: finder.ArchivedCode | None = None
        self._pages = pages.PendingPages(parts.PAGES, parts.SOURCES, parts.INSTEAD, self._window)
        self._began_ns = 0
        self._early: frozenset[str] = frozenset()
        self._watcher = watcher
        self._changing: dict[str, bool] = {}
        for name in (_KERAS, _TENSORFLOW):
            watcher.watch(name, before=self._begin, after=self._end)
        for name, patch in _PATCHES.items():
            watcher.watch(name, after=self._when_loaded(patch))

    def finish(self) -> None:
        """Keep for the next start what this one has loaded. For the end of the program."""
        if self._code is not None:
            self._ledger.add(_PART, f"{self._code.served} modules came from the archive", modules=self._code.served)
        if self._active:
            fetched = ", ".join(sorted(self._pages.fetched)) or "none"
            self._ledger.add(
                _PART,
                f"{self._pages.count} parts of the API were put off, of which the program asked for {fetched}",
                put_off=self._pages.count,
                fetched=len(self._pages.fetched),
            )
            self._keep()

    def _keep(self) -> None:
        """Write the archive where this start has loaded much that it lacks."""
        count = collect.update(self._archive, self._early, self._changing)
        if count:
            self._ledger.add(_PART, f"wrote an archive of {count} modules for the next start", archived=count)
            self._archive = archive.read(collect.archive_name(), collect.identity())

    def _begin(self, spec: ModuleSpec) -> None:
        if self._active is None:
            self._active = self._decide(spec)
        if not self._active:
            return
        self._window.enter()
        if spec.name == _TENSORFLOW and spec.origin:
            os.environ.update(parts.VARIABLES.get(self._release, {}))
            for name, value in parts.DEFAULTS.get(self._release, {}).items():
                os.environ.setdefault(name, value)
            self._open_and_unpack(os.path.dirname(spec.origin))  # noqa: PTH120 - not worth pathlib

    def _end(self, module: ModuleType | None) -> None:
        if not self._active:
            return
        if module is not None and module.__name__ == _TENSORFLOW:
            _load_packages(module)
            registries.await_keys(parts.AWAITED, self._pages.import_whole)
        self._window.leave()
        if not self._window.is_open():
            took = perf_counter_ns() - self._began_ns
            self._early = frozenset(sys.modules)
            if self._code is not None:
                self._code.forget()
            self._ledger.add(_PART, f"{len(sys.modules)} modules loaded in {seconds(took)}", import_ns=took)
            if self._archive is None:
                self._keep()  # now: a service that is ended by a signal never comes to the end of the program

    def _decide(self, spec: ModuleSpec) -> bool:
        """Check that what is about to be imported is known, and make ready."""
        self._began_ns = perf_counter_ns()
        found = spec if spec.name == _TENSORFLOW else PathFinder.find_spec(_TENSORFLOW)
        if found is None or not found.origin:
            self._ledger.add(_PART, "stock: there is no TensorFlow here")
            return False
        self._release = versions.release_of(os.path.dirname(found.origin))  # noqa: PTH120
        if self._release not in versions.VERIFIED:
            seen = f"TensorFlow {self._release}" if self._release else "this TensorFlow"
            self._ledger.refuse(
                _PART, f"{seen} was not verified ({', '.join(versions.VERIFIED)} were); it is imported as usual"
            )
            return False
        for opening in (Collector().pause, references.share_references, self._pages.put_off):
            self._window.add(opening)
        self._archive = archive.read(collect.archive_name(), collect.identity())
        if self._archive is None:
            self._ledger.add(_PART, "no archive of bytecode yet: this start makes one")
        else:
            self._code = finder.ArchivedCode(self._archive)
            finder.install(self._code)
            self._window.add(deferred.Deferrals(parts.DEFERRED, self._is_proven, self._window).put_off)
        for name in parts.DEFERRED:
            if not self._is_proven(name):
                self._prove(name)
        return True

    def _is_proven(self, name: str) -> bool:
        """Say whether an earlier start has loaded a module, and its body changed no setting of the process."""
        row = self._archive.row(name) if self._archive is not None else None
        return row is not None and not row.changes

    def _prove(self, name: str) -> None:
        """Look, in this start, at what the body of a module changes."""
        at_first: list[Settings] = []

        def begin(spec: ModuleSpec) -> None:
            for other in parts.DEFERRED[name]:
                import_module(other)
            at_first.append(Settings())

        def end(module: ModuleType | None) -> None:
            self._changing[name] = module is None or bool(at_first[0].differences())

        self._watcher.watch(name, before=begin, after=end)

    def _open_and_unpack(self, package: str) -> None:
        from .native import Opening

        began = perf_counter_ns()
        opening = Opening(package)
        count = 0
        if self._code is not None:
            # First what needs no shared library: the loader opens one at a time, so the first extension module of
            # numpy would wait here until TensorFlow's are open.
            count = self._code.unpack_next(opening.is_under_way)
            self._import_ahead()
            with contextlib.suppress(Exception):  # met again by whoever needs it
                self._meanwhile()
        unpacked = perf_counter_ns()
        opening.wait()
        took = perf_counter_ns() - began
        self._ledger.add(
            _PART,
            f"opened the shared libraries in {seconds(took)}, and unpacked {count} modules meanwhile",
            libraries_ns=took,
            unpacking_ns=unpacked - began,
            unpacked=count,
        )

    def _import_ahead(self) -> None:
        """Import what TensorFlow is about to import and what needs nothing of it."""
        for name in parts.AHEAD:
            row = self._archive.row(name) if self._archive is not None else None
            if row is not None and row.early:
                with contextlib.suppress(Exception):  # TensorFlow meets it again
                    import_module(name)

    def _when_loaded(self, patch: Callable[[ModuleType], Callable[[], Undo]]) -> Callable[[ModuleType | None], None]:
        def loaded(module: ModuleType | None) -> None:
            if module is not None and self._active:
                self._window.add(patch(module))

        return loaded


def _load_packages(tensorflow: ModuleType) -> None:
    """Load packages that would otherwise be loaded later, and leave what TensorFlow shows under their names alone."""
    names = vars(tensorflow)
    for name in parts.KEPT:
        child = name.rpartition(".")[2]
        shown = names.get(child)
        import_module(name)
        if shown is not None:
            names[child] = shown
