"""The file format of a trace: round trips, golden bytes, and every way a file can be wrong."""

from __future__ import annotations

import hashlib
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glowplug.train.trace import entry
from glowplug.train.trace.entry import DamagedEntryError
from glowplug.train.trace.key import Key

KEY = Key({"model": "ab", "inputs": "cd"}, {"model": {"model.units": "4"}})


def sample() -> bytes:
    return entry.encode(KEY, {"label": "x"}, {"functions": 1}, {"function 0": b"code", "constant 0": b""})


def test_round_trip():
    decoded = entry.decode(sample())
    assert decoded.key() == KEY
    assert decoded.header.info == {"label": "x"}
    assert decoded.plan == {"functions": 1}
    assert decoded.blobs["function 0"] == b"code"
    assert decoded.blobs["constant 0"] == b""


@given(
    st.dictionaries(st.text(), st.text()),
    st.dictionaries(st.text(), st.dictionaries(st.text(), st.text())),
    st.dictionaries(st.text().filter(lambda name: name != "leaves"), st.binary()),
)
def test_any_values_round_trip(components, leaves, blobs):
    decoded = entry.decode(entry.encode(Key(components, leaves), {}, {}, blobs))
    assert decoded.key() == Key(components, leaves)
    assert {name: blob for name, blob in decoded.blobs.items() if name != "leaves"} == blobs


def test_the_layout_is_the_documented_one():
    data = sample()
    magic, length = struct.unpack_from("<8sI", data)
    assert magic == b"GLOWTRC\x01"
    header = data[12 : 12 + length]
    document = json.loads(header)
    assert data[12 + length : 44 + length] == hashlib.sha256(header).digest()
    body = data[44 + length :]
    assert document["body_sha256"] == hashlib.sha256(body).hexdigest()
    assert document["blobs"][0] == ["function 0", 0, 4]
    assert body.startswith(b"code")


def test_a_header_needs_no_body():
    data = sample()
    size = entry.header_size(data[:12])
    assert entry.decode_header(data[:size]).info == {"label": "x"}


def _rewritten(**changes):
    """Return a sample whose header was changed by someone who knows how to make the digest fit."""
    data = sample()
    _, length = struct.unpack_from("<8sI", data)
    document = {**json.loads(data[12 : 12 + length]), **changes}
    document = {name: value for name, value in document.items() if value is not ...}
    header = json.dumps(document).encode()
    return (
        struct.pack("<8sI", entry.MAGIC, len(header)) + header + hashlib.sha256(header).digest() + data[44 + length :]
    )


HOSTILE = {
    "nothing": b"",
    "short": b"GLOWTRC",
    "another magic": b"GLOWTRC\x02" + sample()[8:],
    "a huge header": struct.pack("<8sI", entry.MAGIC, entry.MAX_HEADER_BYTES + 1),
    "a cut header": sample()[:40],
    "a cut body": sample()[:-1],
    "more than there should be": sample() + b"x",
    "a changed header": sample()[:30] + b"!" + sample()[31:],
    "no JSON": struct.pack("<8sI", entry.MAGIC, 2) + b"[[" + hashlib.sha256(b"[[").digest(),
    "another JSON": struct.pack("<8sI", entry.MAGIC, 2) + b"[]" + hashlib.sha256(b"[]").digest(),
    "no components": _rewritten(components=...),
    "components of another kind": _rewritten(components=[]),
    "blobs of another kind": _rewritten(blobs=[["a", 0]]),
    "a blob past the end": _rewritten(blobs=[["a", 0, 10**9]]),
    "a blob before the start": _rewritten(blobs=[["a", -5, 2]]),
    "a blob of negative size": _rewritten(blobs=[["a", 3, -2]]),
    "an offset that is no number": _rewritten(blobs=[["a", "0", 2]]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file(name):
    with pytest.raises(DamagedEntryError):
        entry.decode(HOSTILE[name])


def test_leaves_that_are_not_readable():
    decoded = entry.decode(_rewritten(blobs=[["leaves", 0, 4]]))
    with pytest.raises(DamagedEntryError):
        decoded.key()
