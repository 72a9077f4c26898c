"""What `test_isolated` has called in other processes."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from glowplug.core.errors import OutputMismatchError


def echo(argument: Any) -> Any:
    print("not part of the answer")
    return [argument, os.getpid()]


def session_and_group(argument: Any) -> list[int]:
    return [os.getsid(0), os.getpgid(0)]


def die(argument: Any) -> None:
    os.kill(os.getpid(), getattr(signal, argument["signal"]))


def hang(argument: Any) -> None:
    threading.Event().wait()


def fail(argument: Any) -> None:
    raise ZeroDivisionError("something unforeseen")


def refuse(argument: Any) -> None:
    raise OutputMismatchError("they differ", seen="by much", remedy="look")
