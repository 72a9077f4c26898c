"""Children of the target are followed, and nothing in the target's view of itself shows it.

Runs in the target. The shim came in through PYTHONPATH. `os.environ` and `sys.path` get back what the caller had; the
C library's environment, which new programs inherit, keeps the entry, and so do explicit environments at the moment a
program is started. `docs/decisions/0010-entering-the-target.md` has the reasons.
"""

from __future__ import annotations

import os
import sys

from . import user_lines
from .recorder import EVENT, Recorder, get_thread_id, now_ns

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any

NAME = b"PYTHONPATH"


class Entry:
    """The entry that the probe puts in front of PYTHONPATH. One of three directories says what was there before."""

    def __init__(self, run_directory: str) -> None:
        self.root = os.fsencode(run_directory)

    def add(self, value: bytes | None) -> bytes:
        """Return the PYTHONPATH that makes a child load the shim, given the one it would have had."""
        if value is None:
            return self.root + b"/unset"
        if value.startswith(self.root):
            return value
        return self.root + b"/set:" + value if value else self.root + b"/empty"

    def remove(self, value: bytes) -> bytes | None:
        """Return what `add` was given."""
        head, _, rest = value.partition(b":")
        if head == self.root + b"/unset":
            return None
        if head == self.root + b"/empty":
            return b""
        return rest if head == self.root + b"/set" else value


def hide(entry: Entry) -> None:
    """Give `os.environ` and `sys.path` back what the caller of the target had."""
    data = os.environ._data  # type: ignore[attr-defined]
    value = entry.remove(data.get(NAME, b""))
    if value is None:
        data.pop(NAME, None)
    else:
        data[NAME] = value
    prefix = os.fsdecode(entry.root) + os.sep
    sys.path[:] = [path for path in sys.path if not path.startswith(prefix)]
    for path in list(sys.path_importer_cache):
        if path.startswith(prefix):
            del sys.path_importer_cache[path]


def follow_children(entry: Entry, recorder: Recorder) -> None:
    """Make every program and every fork that the target starts record into the same run."""
    _keep_in_c_environment(entry)
    _keep_in_explicit_environments(entry)
    os.register_at_fork(
        before=lambda: _before_fork(recorder),
        after_in_parent=lambda: None,
        after_in_child=recorder.reopen_after_fork,
    )


def _keep_in_c_environment(entry: Entry) -> None:
    original_put, original_unset = os.putenv, os.unsetenv

    def putenv(name: Any, value: Any, /) -> None:
        if os.fsencode(name) == NAME:
            value = entry.add(os.fsencode(value))
        original_put(name, value)

    def unsetenv(name: Any, /) -> None:
        if os.fsencode(name) == NAME:
            original_put(NAME, entry.add(None))
        else:
            original_unset(name)

    os.putenv, os.unsetenv = putenv, unsetenv


def _keep_in_explicit_environments(entry: Entry) -> None:
    import _posixsubprocess

    fork_exec: Any = _posixsubprocess.fork_exec

    def fork_exec_followed(*args: Any) -> Any:
        env_list = args[5] if len(args) > 5 else None
        if env_list is not None:
            args = (*args[:5], _with_entry(env_list, entry), *args[6:])
        return fork_exec(*args)

    _posixsubprocess.fork_exec = fork_exec_followed
    subprocess = sys.modules.get("subprocess")
    if subprocess is not None and hasattr(subprocess, "_fork_exec"):
        subprocess._fork_exec = fork_exec_followed  # type: ignore[attr-defined]
    for name in ("execve", "posix_spawn", "posix_spawnp"):
        original = getattr(os, name, None)
        if original is not None:
            setattr(os, name, _make_spawner(original, entry))


def _make_spawner(original: Any, entry: Entry) -> Any:
    def spawner(path: Any, argv: Any, env: Any, *args: Any, **options: Any) -> Any:
        if hasattr(env, "items"):
            mapping = {os.fsencode(key): os.fsencode(value) for key, value in env.items()}
            mapping[NAME] = entry.add(mapping.get(NAME))
            env = mapping
        return original(path, argv, env, *args, **options)

    spawner.__name__ = spawner.__qualname__ = original.__name__
    return spawner


def _with_entry(env_list: Any, entry: Entry) -> list[bytes]:
    old = next((item[len(NAME) + 1 :] for item in env_list if item.startswith(NAME + b"=")), None)
    kept = [item for item in env_list if not item.startswith(NAME + b"=")]
    return [*kept, NAME + b"=" + entry.add(old)]


def _before_fork(recorder: Recorder) -> None:
    from . import runtime_state

    attrs: dict[str, object] = {
        "kind": "fork",
        "runtime_ready": runtime_state.is_ready(),
        "threads": runtime_state.count_threads(),
        "how": "multiprocessing" if "multiprocessing.popen_fork" in sys.modules else "os.fork",
    }
    site = user_lines.user_site()
    if site is not None:
        attrs["site"] = site
    recorder.write((EVENT, get_thread_id(), now_ns(), "interpreter", "fork", attrs))
