"""The directory of a run: the generated `sitecustomize` that brings the shim in, and room for event files."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

_SHARED_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 512 << 20

_ENTRY = Path(__file__).parent / "entry"

# Written for any Python, even one too old for the shim: there it does nothing. Where there is no other
# `sitecustomize` to load it ends as if it were not there itself.
_SITECUSTOMIZE = """\
import sys
if sys.version_info >= (3, 9):
    import time
    entered_ns = time.perf_counter_ns()
    sys.path.insert(0, {entry!r})
    try:
        from _glowplug_shim.activate import activate
    finally:
        sys.path.remove({entry!r})
        sys.path_importer_cache.pop({entry!r}, None)
    activate({run!r}, entered_ns)
if getattr(sys.modules.get("sitecustomize"), "__dict__", None) in (None, globals()):
    error = ImportError("No module named 'sitecustomize'")
    error.name = "sitecustomize"
    raise error
"""


@contextlib.contextmanager
def run_directory(*, calls: bool = False) -> Iterator[Path]:
    """Yield a fresh private directory with everything a target needs, and remove it at the end."""
    path = Path(tempfile.mkdtemp(prefix="glowplug-", dir=_best_parent()))
    try:
        (path / "events").mkdir()
        if calls:
            (path / "calls").touch()
        for name in ("set", "unset", "empty"):
            (path / name).mkdir()
            text = _SITECUSTOMIZE.format(entry=str(_ENTRY), run=str(path))
            (path / name / "sitecustomize.py").write_text(text)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def child_environment(environment: Mapping[str, str], run: Path) -> dict[str, str]:
    """Return an environment for the target: the given one with the run's entry in front of PYTHONPATH."""
    value = environment.get("PYTHONPATH")
    if value is None:
        entry = str(run / "unset")
    elif value == "":
        entry = str(run / "empty")
    else:
        entry = f"{run / 'set'}{os.pathsep}{value}"
    return {**environment, "PYTHONPATH": entry}


def _best_parent() -> Path | None:
    """Prefer shared memory: event files are written through a mapping, and a disk would write them back."""
    if _SHARED_MEMORY.is_dir() and os.access(_SHARED_MEMORY, os.W_OK | os.X_OK):
        room = os.statvfs(_SHARED_MEMORY)
        if room.f_bavail * room.f_frsize >= _ROOM_BYTES:
            return _SHARED_MEMORY
    return None
