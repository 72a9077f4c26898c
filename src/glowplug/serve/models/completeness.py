"""Whether all of a version has arrived: files that say how long others must be are believed before those are read.

What cannot be told from the files (an asset that is half copied) is told by time: a version whose files still change is
left alone for a moment (`manager`).
"""

from __future__ import annotations

from pathlib import Path

from glowplug.bundle import layout
from glowplug.core.checkpoint_index import CutOffError, read_index, shard_sizes
from glowplug.core.errors import GlowplugError
from glowplug.core.protobuf_wire import BYTES, VARINT, read_varint

from .sources import Source

_PROTO = "saved_model.pb"
_HEAD_BYTES = 32  # enough for the tag and the length of a field
_INDEX = Path("variables") / "variables.index"


def what_is_missing(source: Source) -> str:
    """Return what a version still lacks, or an empty text."""
    try:
        if source.kind == "bundle":
            return _of_bundle(source.path)
        if source.kind == "tflite":
            return _of_tflite(source.path / layout.TFLITE)
        return _of_graph(source.path / _PROTO) or _of_variables(source.path)
    except OSError as error:
        return f"a file cannot be read ({error.strerror})"


def _of_bundle(path: Path) -> str:
    from glowplug.bundle.reader import read_manifest

    try:
        files = read_manifest(path).files
    except GlowplugError as error:
        return f"its manifest is not whole: {error}"
    for name, entry in files.items():
        seen = _size(path / name)
        if seen != entry.size:
            return f"{name} has {'no' if seen is None else seen} bytes of {entry.size}"
    return ""


def _of_tflite(path: Path) -> str:
    from glowplug.bundle.tflite.model import check_tflite_file

    try:
        with path.open("rb", buffering=0) as stream:
            check_tflite_file(stream)
    except GlowplugError as error:
        return f"{path.name} is not whole: {error}"
    return ""


def _of_graph(path: Path) -> str:
    """A message has no end of its own: it is whole where the last of its fields ends with the file."""
    if not path.is_file():
        return ""  # another of the forms that TensorFlow writes
    size, position = path.stat().st_size, 0
    with path.open("rb") as stream:
        while position < size:
            stream.seek(position)
            head = stream.read(_HEAD_BYTES)
            try:
                tag, start = read_varint(head, 0, len(head))
                length, start = read_varint(head, start, len(head))
            except ValueError:
                return f"{path.name} ends in the middle of a field"
            if tag & 7 not in (BYTES, VARINT):
                return ""  # no SavedModel: whoever loads it will say so
            position += start + (length if tag & 7 == BYTES else 0)
    return "" if position == size and size else f"{path.name} has {size} bytes of {position}"


def _of_variables(path: Path) -> str:
    index = path / _INDEX
    shards = sorted(index.parent.glob("variables.data-*"))
    if not index.is_file():
        return f"{index.name} is missing" if shards else ""
    try:
        wanted = shard_sizes(read_index(index))
    except CutOffError as error:
        return f"{index.name} is not whole: {error}"
    except ValueError:
        return ""  # a form that is not read here: whoever loads it will say what is wrong
    numbers = {shard: shard.name[len("variables.data-") :].partition("-")[0] for shard in shards}
    found = {int(number): shard for shard, number in numbers.items() if number.isdigit()}
    for number, size in wanted.items():
        shard = found.get(number)
        seen = None if shard is None else _size(shard)
        if seen is None or seen < size:
            name = f"variables.data-{number:05}" if shard is None else shard.name
            return f"{name} has {seen or 'no'} bytes of {size}"
    return ""


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
