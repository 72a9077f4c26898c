"""The import tree: who imported what, and how long each module and each native library took.

Runs in the target. It replaces `_find_and_load`, which the interpreter calls for every module that is not loaded
yet: the same place at which `-X importtime` takes its times, and free for modules that are loaded. The wrapper
carries importlib's own file name, so that the interpreter trims it from tracebacks as it trims importlib.
"""

from __future__ import annotations

import _imp
import os
import sys
import time

from . import user_lines
from .patching import roomy
from .recorder import Recorder, now_ns

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    Hook = Callable[[Any], None]
    Trigger = Callable[[], None]

BOOTSTRAP_FILE = "<frozen importlib._bootstrap>"
IMPORTLIB_FILES = ("<frozen importlib", os.path.join(os.path.dirname(os.__file__), "importlib"))
LANDMARKS = frozenset({"tensorflow", "keras", "tf_keras", "numpy"})
VERSIONED = LANDMARKS | {"h5py", "safetensors", "jax", "torch", "ray", "transformers"}
LIBRARY_THRESHOLD_NS = 1_000_000
OWN = __package__  # modules of the shim itself are no part of the target's import tree


def install(recorder: Recorder, hooks: dict[str, Hook], triggers: dict[str, Trigger]) -> None:
    """Start recording imports.

    `hooks` run once, right after the module they are named for has been loaded; `triggers` once, right before.
    """
    depth.own_modules = sum(1 for name in list(sys.modules) if name.startswith(OWN))
    bootstrap = sys.modules["_frozen_importlib"]
    bootstrap._find_and_load = _as_importlib(_make_find_and_load(bootstrap._find_and_load, recorder, hooks, triggers))  # type: ignore[attr-defined]
    _imp.create_dynamic = _as_importlib(_make_create_dynamic(_imp.create_dynamic, recorder))


def _as_importlib(function: Any) -> Any:
    function.__code__ = function.__code__.replace(co_filename=BOOTSTRAP_FILE)
    return function


def _make_find_and_load(original: Any, recorder: Recorder, hooks: dict[str, Hook], triggers: dict[str, Trigger]) -> Any:
    begin, end, describe, finish = recorder.begin, recorder.end, _describe, _finish

    @roomy
    @_as_importlib
    def load_roomy(name: str, import_: Any) -> Any:
        return original(name, import_)

    def _find_and_load(name: str, import_: Any) -> Any:
        if name.startswith(OWN):
            depth.own_modules += 1
            return original(name, import_)
        if name in triggers:
            triggers.pop(name)()
        attrs, usage = describe(name)
        number = begin("import", name, attrs)
        depth.value += 1
        try:
            module = load_roomy(name, import_) if depth.value == 1 else original(name, import_)
        except BaseException as error:
            depth.value -= 1
            end(number, {"error": type(error).__name__})
            raise
        depth.value -= 1
        end(number, finish(name, module, usage))
        if name in hooks:
            _run_hook(name, module, hooks, recorder)
        return module

    return _find_and_load


class Depth:
    """How deep the nest of imports is. Shared by threads: it only decides which imports get extra figures."""

    value = 0
    own_modules = 0


depth = Depth()


def _describe(name: str) -> tuple[dict[str, object], _Usage | None]:
    """Say who asked for a module: the frame above importlib's own."""
    attrs: dict[str, object] = {"kind": "module"}
    frame = sys._getframe(1)  # importlib's own, as far as its file name goes; below it there may be none
    while frame.f_code.co_filename.startswith(IMPORTLIB_FILES) and frame.f_back is not None:
        frame = frame.f_back
    outermost = depth.value == 0
    path = frame.f_code.co_filename
    called = not path.startswith(IMPORTLIB_FILES)
    importer = frame.f_globals.get("__name__")
    if type(importer) is str and importer.startswith(OWN):
        importer, called = "site", name == "sitecustomize"  # we load the target's `sitecustomize` in place of `site`
    if called and type(importer) is str:
        attrs["importer"] = importer
    if called and importer != "site" and (name in LANDMARKS or outermost or user_lines.is_user_file(path)):
        attrs["site"] = f"{path}:{frame.f_lineno}"
    return attrs, _Usage() if outermost or name in LANDMARKS else None


def _finish(name: str, module: object, usage: _Usage | None) -> dict[str, object] | None:
    attrs: dict[str, object] = {}
    try:
        # Not getattr: lazy modules load themselves when an attribute is looked up.
        names = object.__getattribute__(sys.modules.get(name, module), "__dict__")
    except AttributeError:
        names = {}
    path = names.get("__file__")
    if type(path) is str:
        attrs["file"] = path
    if name in VERSIONED and type(names.get("__version__")) is str:
        attrs["version"] = names["__version__"]
    if usage is not None:
        attrs.update(usage.since())
    return attrs or None


class _Usage:
    """What the process had used when an import began."""

    __slots__ = ("cpu_ns", "major_faults", "modules", "read_bytes")

    def __init__(self) -> None:
        self.cpu_ns = time.thread_time_ns()
        self.major_faults, self.read_bytes = _faults_and_reads()
        self.modules = count_modules()

    def since(self) -> dict[str, object]:
        major_faults, read_bytes = _faults_and_reads()
        return {
            "cpu_ns": time.thread_time_ns() - self.cpu_ns,
            "major_faults": major_faults - self.major_faults,
            "read_bytes": read_bytes - self.read_bytes,
            "modules": max(0, count_modules() - self.modules),
        }


def count_modules() -> int:
    """Return how many modules the target has loaded: ours are not among them."""
    return len(sys.modules) - depth.own_modules


def _faults_and_reads() -> tuple[int, int]:
    """Return the major page faults of this process and the bytes it made the kernel fetch from storage."""
    faults = reads = 0
    try:
        with open("/proc/self/stat", "rb", 0) as stream:
            faults = int(stream.read(1024).rpartition(b")")[2].split()[9])
        with open("/proc/self/io", "rb", 0) as stream:
            for line in stream.read(1024).splitlines():
                if line.startswith(b"read_bytes:"):
                    reads = int(line[11:])
    except (OSError, ValueError, IndexError):
        pass
    return faults, reads


def _make_create_dynamic(original: Any, recorder: Recorder) -> Any:
    def create_dynamic(spec: Any, file: Any = None) -> Any:
        start_ns = now_ns()
        try:
            return original(spec, file) if file is not None else original(spec)
        finally:
            end_ns = now_ns()
            if end_ns - start_ns >= LIBRARY_THRESHOLD_NS:
                path = str(getattr(spec, "origin", "") or "")
                record_library(recorder, path, start_ns, end_ns)

    return create_dynamic


def record_library(recorder: Recorder, path: str, start_ns: int, end_ns: int) -> None:
    """Record the load of one shared library, static initialisers included."""
    attrs: dict[str, object] = {"kind": "library", "path": path}
    try:
        attrs["bytes"] = os.stat(path).st_size
    except OSError:
        pass
    recorder.span(start_ns, end_ns, "library_load", os.path.basename(path) or path, attrs)


def _run_hook(name: str, module: ModuleType, hooks: dict[str, Hook], recorder: Recorder) -> None:
    spec = object.__getattribute__(module, "__dict__").get("__spec__")
    module = sys.modules.get(name, module)
    if getattr(spec, "_initializing", False):
        return  # half loaded: this was a circular import, the outer load will come back here
    hook = hooks.pop(name, None)
    if hook is None:
        return
    try:
        hook(module)
    except Exception as error:  # the target must run on whatever a library looks like
        recorder.note(f"{name} is not instrumented: {type(error).__name__}: {error}")
