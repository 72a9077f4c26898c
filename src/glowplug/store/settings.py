"""What a user may set about transfers and the node cache, from the environment; each has a default that suits most."""

from __future__ import annotations

import os
from dataclasses import dataclass

from glowplug.core.errors import UsageError

CACHE_BYTES = "GLOWPLUG_NODE_CACHE_BYTES"
CONNECTIONS = "GLOWPLUG_CONNECTIONS"
RETRIES = "GLOWPLUG_RETRIES"
START_JITTER_S = "GLOWPLUG_START_JITTER_S"


@dataclass(frozen=True, slots=True)
class Settings:
    """How transfers behave. `cache_bytes` and `start_jitter_s` are None where they follow from disk and size."""

    connections: int = 8  # to one origin, of all processes on this host
    retries: int = 8
    cache_bytes: int | None = None
    start_jitter_s: float | None = None


def from_environment() -> Settings:
    """Read the settings; a value that is no number is a usage error that names its variable."""
    default = Settings()
    connections, retries = _number(CONNECTIONS), _number(RETRIES)
    cache_bytes, jitter = _number(CACHE_BYTES), _number(START_JITTER_S)
    return Settings(
        default.connections if connections is None else max(1, int(connections)),
        default.retries if retries is None else int(retries),
        None if cache_bytes is None else int(cache_bytes),
        jitter,
    )


def _number(variable: str) -> float | None:
    text = os.environ.get(variable, "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError("this variable must be a number from zero on", seen=f"{variable}={text}")
    return value
