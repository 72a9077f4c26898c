"""What a path that is loaded looks like: size, number of files, file system. Runs in the target."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from .tracker import Attrs

MAXIMUM_FILES = 2000


def describe_path(path: object) -> Attrs:
    """Return `path`, and where they can be had `bytes`, `files` and `filesystem`."""
    text = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else str(path)
    attrs: Attrs = {"path": text}
    if "://" in text:
        attrs["filesystem"] = text.partition("://")[0]
        return attrs
    attrs["path"] = os.path.abspath(text)
    try:
        attrs["bytes"], attrs["files"] = _measure(text)
        attrs["filesystem"] = filesystem_of(text)
    except OSError:
        pass
    return attrs


def _measure(path: str) -> tuple[int, int]:
    if os.path.isfile(path):
        return os.stat(path).st_size, 1
    size = count = 0
    if os.path.isdir(path):
        for directory, _, names in os.walk(path):
            for name in names:
                size += os.stat(os.path.join(directory, name)).st_size
                count += 1
                if count >= MAXIMUM_FILES:
                    return size, count
        return size, count
    # A checkpoint is named by the prefix of its files.
    directory, prefix = os.path.split(path)
    for entry in os.scandir(directory or "."):
        if entry.name.startswith(prefix + "."):
            size += entry.stat().st_size
            count += 1
    return size, count


def filesystem_of(path: str) -> str:
    """Return the type of the file system that holds a path, as /proc/self/mounts names it."""
    real = os.path.realpath(path)
    best, kind = "", ""
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as stream:
        for line in stream:
            fields = line.split(" ")
            mount = fields[1]
            if (real == mount or real.startswith(mount.rstrip("/") + "/")) and len(mount) >= len(best):
                best, kind = mount, fields[2]
    return kind


def in_event_loop() -> bool:
    """Say whether this thread runs an asyncio event loop right now, which a blocking call would stop."""
    import sys

    events = sys.modules.get("asyncio.events")
    return events is not None and events._get_running_loop() is not None
