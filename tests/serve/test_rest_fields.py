"""Heads of REST requests: what they say about body and answer, and those that two readers would read in two ways."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest

from glowplug.core.errors import RequestError
from glowplug.serve.rest.fields import TwiceError, accepts_gzip, add_field
from glowplug.serve.wire.gzip_members import unpacked
from tests.serve.test_rest import PREDICT, exchange

pytestmark = pytest.mark.tensorflow

BODY = b'{"instances": [1.0]}'
CHUNKS = b"14\r\n" + BODY + b"\r\n0\r\n"
GOOD = b'{"predictions":[2.5]}'


def post(fields: bytes, body: bytes = BODY, *, target: bytes = PREDICT.encode(), version: bytes = b"1.1") -> bytes:
    if b"Transfer-Encoding" not in fields:
        fields += b"Content-Length: %d\r\n" % len(body)
    return b"POST %s HTTP/%s\r\nHost: h\r\n%sConnection: close\r\n\r\n%s" % (target, version, fields, body)


@pytest.mark.parametrize("trailer", [b"Content-Encoding: gzip", b"X-Request-Id: late", b"Host: other"])
def test_trailers_change_nothing(server, trailer):
    answer = exchange(server, post(b"Transfer-Encoding: chunked\r\n", CHUNKS + trailer + b"\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(GOOD)
    assert b"late" not in answer


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (b"Host: other\r\n", b"400"),
        (b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n", b"400"),
        (b"Inference-Header-Content-Length: 1\r\nInference-Header-Content-Length: 2\r\n", b"400"),
        (b"Transfer-Encoding: gzip, chunked\r\n", b"501"),
        (b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", b"501"),
    ],
)
def test_heads_that_can_be_read_in_two_ways_are_refused(server, fields, status):
    answer = exchange(server, post(fields, CHUNKS + b"\r\n" if b"Transfer" in fields else BODY))
    assert answer.startswith(b"HTTP/1.1 " + status + b" ")
    assert answer.count(b"HTTP/1.1") == 1


def test_other_versions_of_http(server):
    assert exchange(server, post(b"", version=b"2.0")).startswith(b"HTTP/1.1 505 ")
    old = exchange(server, post(b"Transfer-Encoding: chunked\r\n", CHUNKS + b"\r\n", version=b"1.0"))
    assert old.startswith(b"HTTP/1.1 400 ")
    assert exchange(server, post(b"Expect: 100-continue\r\n", version=b"1.0")).startswith(b"HTTP/1.1 200 ")
    assert exchange(server, post(b"Expect: 100-continue\r\n")).startswith(b"HTTP/1.1 100 ")


@pytest.mark.parametrize("origin", [b"http://h", b"HTTPS://h:8501"])
def test_targets_as_proxies_write_them(server, origin):
    assert exchange(server, post(b"", target=origin + PREDICT.encode() + b"?a=b")).endswith(GOOD)
    look = b"GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    assert exchange(server, look % (origin + b"/healthz")).endswith(b"ok\n")
    assert b"text/html" in exchange(server, look % origin)


@pytest.mark.parametrize("coding", ["deflate", "gzip, gzip", "br", "gzip\r\nContent-Encoding: identity"])
@pytest.mark.parametrize("path", [PREDICT, "/v1/models/half:regress", "/v2/models/half/infer"])
def test_other_encodings_of_a_body_are_named(server, path, coding):
    answer = exchange(
        server, post(f"Content-Encoding: {coding}\r\n".encode(), zlib.compress(BODY), target=path.encode())
    )
    assert answer.startswith(b"HTTP/1.1 400 ")
    seen = coding.replace("\r\nContent-Encoding: ", ", ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"] == (
        f"this compression is not supported: {seen}; use gzip, or none"
    )


@pytest.mark.parametrize("coding", [b"GZIP", b"x-gzip", b" gzip "])
def test_gzip_by_its_other_names(server, coding):
    assert exchange(server, post(b"Content-Encoding:" + coding + b"\r\n", gzip.compress(BODY))).endswith(GOOD)


def test_bodies_of_several_members(server):
    whole = b'{"instances": [%s1.0]}' % (b"1.0, " * 9999)
    for text, count in ((BODY, 1), (whole, 10_000)):
        packed = gzip.compress(text[:9]) + gzip.compress(b"") + gzip.compress(text[9:])
        answer = exchange(server, post(b"Content-Encoding: gzip\r\n", packed))
        assert answer.startswith(b"HTTP/1.1 200 "), answer[:500]
        assert answer.count(b"2.5") == count


def test_members_have_bounds():
    one = gzip.compress(b"abc")
    assert unpacked(one, 3) == b"abc"
    assert unpacked(one, 2) is None
    assert unpacked(one * 2, 6) == b"abcabc"
    assert unpacked(one * 2, 5) is None
    assert unpacked(gzip.compress(bytes(1 << 20)), 1 << 20) == bytes(1 << 20)
    for wrong, part in ((one + b"garbage", "not gzip"), (one[:-1], "cut off"), (b"", "cut off"), (one * 1001, "many")):
        with pytest.raises(RequestError, match=part):
            unpacked(wrong, 1 << 20)


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        (b"gzip", True),
        (b"br, GZIP;q=0.5", True),
        (b"gzip;q=0", False),
        (b"gzip; q=0.000, br", False),
        (b"gzip;q=0.001", True),
        (b"identity", False),
        (b"", False),
        (b"not-gzip", False),
    ],
)
def test_who_takes_gzip(value, accepted):
    assert accepts_gzip({b"accept-encoding": value}) is accepted


def test_fields_that_come_twice_are_lists():
    fields: dict[bytes, bytes] = {}
    add_field(fields, b"Accept-Encoding", b"br")
    add_field(fields, b"accept-encoding", b"gzip")
    assert fields == {b"accept-encoding": b"br, gzip"}


def test_a_field_that_comes_very_often_is_not_copied_without_end():
    fields = {b"a": b"b" * 8000}
    for _ in range(65):
        add_field(fields, b"a", b"b")
    with pytest.raises(TwiceError, match="too large") as caught:
        add_field(fields, b"a", b"b")
    assert caught.value.status == 431
    assert len(fields[b"a"]) < 1 << 14
