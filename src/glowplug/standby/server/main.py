"""The life of a standby's process, from its settings to its end. In a child it goes on as the caller's program."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import sys
import time
from typing import Any

from glowplug.standby import key, paths, wire
from glowplug.standby.child import become

from . import preload
from .freshness import Freshness
from .loop import Server

_BACKLOG = 128
_OPEN_FILES = 4096


def main(settings: dict[str, Any]) -> int:
    """Be a standby. In a child this returns as the program's end."""
    began_ns = time.time_ns()
    kind, names = settings["kind"], tuple(settings["preload"])
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path.insert(0, "")  # where `key.search_path` and a program expect the program's own entry
    components = key.components(kind, names)
    name = key.digest(components)
    if components != settings["key"]:
        return _report(settings, f"it would differ in {key.difference(components, settings['key'])}")
    place = paths.Place("", settings["place"], "")
    os.set_inheritable(place.descriptor, False)
    lock = place.lock(f"{name}.lock")
    if lock is None:
        return _report(settings, "there is one already")
    os.truncate(lock, 0)
    os.write(lock, repr(components).encode("utf-8", "surrogateescape"))  # whose it is, if it should not answer
    try:
        withheld = preload.import_all(kind, names, settings["companion"])
        modules = [module for module in sys.modules.values() if module is not None]
        modules += withheld.modules() if withheld is not None else []
        fresh = Freshness(modules, began_ns)
        problem = fresh.newborn_problem()
        if problem:
            return _report(settings, problem)
        _raise_limit_of_files()
        listener = _listen(place, name)
        sys.stdout.flush()  # or each child writes it again
        sys.stderr.flush()
        preload.freeze()
    except Exception as error:  # the process boundary: whoever started this reads it
        return _report(settings, f"{type(error).__name__}: {error}")

    def retire() -> None:
        place.remove(f"{name}.sock")
        fcntl.flock(lock, fcntl.LOCK_UN)  # the next one may begin while runs of this one go on

    def replace() -> None:
        from glowplug.standby.starting import start

        start(kind, names, settings["companion"], idle_s=settings["idle_s"], wait=False)

    server = Server(
        listener, components, float(settings["idle_s"]), fresh, retire, replace, (lock, place.descriptor), len(modules)
    )
    _report(settings, "")
    forked = server.serve()
    if forked is None:
        place.sweep()
        os._exit(0)  # nothing to clean up, and taking thousands of modules apart would take half a second
    become.leave(become.run(forked, withheld))


def _listen(place: paths.Place, name: str) -> wire.Socket:
    listener = wire.new_socket()
    listener.setblocking(False)
    path = f"{name}.sock"
    place.remove(path)  # what a killed standby left; the lock says that it is gone
    before = os.umask(0o177)
    try:
        listener.bind(place.through(path))
    finally:
        os.umask(before)
    listener.listen(_BACKLOG)
    return listener


def _raise_limit_of_files() -> None:
    """Have room for many callers. A child gets its own caller's limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < room:
        resource.setrlimit(resource.RLIMIT_NOFILE, (room, hard))


def _report(settings: dict[str, Any], problem: str) -> int:
    """Tell whoever started this standby how it went; an empty text means that it is ready."""
    descriptor = settings["ready"]
    with contextlib.suppress(BrokenPipeError):
        os.write(descriptor, problem.encode()[:2000] or b"\n")
    os.close(descriptor)
    if settings["turn"] is not None:
        os.close(settings["turn"])
    return 1 if problem else 0
