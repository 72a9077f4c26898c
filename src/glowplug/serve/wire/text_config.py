"""Configuration files in protobuf's text form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from glowplug.core.disk.regular_files import read_regular
from glowplug.core.errors import StorageError, UsageError

from .messages import pool, serving

_MAX_BYTES = 1 << 24


def read_text(path: Path, name: str) -> Any:
    """Return the message of package `tensorflow.serving` that a file holds."""
    try:
        data = read_regular(path, _MAX_BYTES)
    except OSError as error:
        raise StorageError("cannot read the configuration", seen=f"{path} ({error.strerror})") from error
    return parse_text(data.decode(errors="replace"), name, str(path))


def parse_text(text: str, name: str, where: str) -> Any:
    """Return the message that `text` describes; `where` names it in errors."""
    from google.protobuf import text_format

    try:
        return text_format.Parse(text, serving(name)(), descriptor_pool=pool())
    except text_format.ParseError as error:
        text = f"Error parsing text-format tensorflow.serving.{name}"  # the words that TensorFlow Serving's logs have
        raise UsageError(text, seen=f"{where}: {error}") from error
