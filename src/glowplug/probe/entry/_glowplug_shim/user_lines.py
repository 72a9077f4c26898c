"""Which line of the user's program is behind a call. Runs in the target."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from types import FrameType

_SHIM = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_MARKS = ("site-packages", "dist-packages", "__autograph_generated_file", "<frozen ", "<__array_function__")

_is_user: dict[str, bool] = {}


def is_user_file(path: str) -> bool:
    """Say whether a source file is the user's: not the standard library, not installed, not generated."""
    known = _is_user.get(path)
    if known is None:
        known = not (path.startswith((_SHIM, _LIBRARY, "<frozen ")) or any(mark in path for mark in _MARKS))
        _is_user[path] = known
    return known


def user_frame(depth: int = 1) -> FrameType | None:
    """Return the innermost frame of user code above the caller, or None."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        path = frame.f_code.co_filename
        known = _is_user.get(path)
        if known or (known is None and is_user_file(path)):
            return frame
        frame = frame.f_back
    return None


def user_site(depth: int = 2) -> str | None:
    """Return `path:line` of the innermost frame of user code, or None."""
    frame = user_frame(depth)
    return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def with_site(attrs: dict[str, object], depth: int = 3) -> dict[str, object]:
    """Add the attribute `site` where there is one."""
    site = user_site(depth)
    if site is not None:
        attrs["site"] = site
    return attrs
