"""Which relative paths, named by a file that others wrote, are safe to follow: plain ones that stay inside."""

from __future__ import annotations

MAX_PATH_BYTES = 1024
MAX_COMPONENT_BYTES = 255  # NAME_MAX of the file systems that things travel over


def objection(path: str) -> str:
    """Return why `path` is not a plain relative POSIX path that stays inside; nothing where it is one."""
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        return "it is not Unicode text"
    if len(encoded) > MAX_PATH_BYTES:
        return f"it is longer than {MAX_PATH_BYTES} bytes"
    if "\\" in path or not path.isprintable():
        return "it has a backslash or a character that does not print"
    for component in path.split("/"):
        if component in ("", ".", ".."):
            return "a component is empty, `.` or `..`"
        if len(component.encode()) > MAX_COMPONENT_BYTES:
            return f"a component is longer than {MAX_COMPONENT_BYTES} bytes"
    return ""
