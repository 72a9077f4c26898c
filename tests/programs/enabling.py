"""A pytest plugin: `train.enable()` around tests that know nothing of it. `TRACE_CACHE` names the cache's folder."""

from __future__ import annotations

import os
from typing import Any


def pytest_configure(config: Any) -> None:
    from glowplug import train

    train.enable(os.environ["TRACE_CACHE"])
    config.addinivalue_line("markers", "requires_trainable_backend: a marker of Keras' own")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    from glowplug import train

    terminalreporter.write_line(f"glowplug: {train.counts()}")
