"""HTTP: ranges, refusals, `Retry-After`, and servers that break off."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from glowplug.core.errors import AccessError, ObjectNotFoundError, StorageError, UnreachableError
from glowplug.store.backends.web import WebBackend, retry_after_s
from tests.fakes.web_server import WebServer, serving


@pytest.fixture
def web():
    with serving() as server:
        server.objects["/a/b%20c"] = bytes(range(256))
        yield server


def backend(web: WebServer) -> WebBackend:
    return WebBackend(web.url)


def test_ranges_are_read(web):
    assert backend(web).read("a/b%20c", 10, 20) == bytes(range(10, 20))
    assert backend(web).size("a/b%20c") == 256


def test_a_server_without_ranges_gives_the_same(web):
    web.knows_ranges = False
    assert backend(web).read("a/b%20c", 10, 20) == bytes(range(10, 20))
    assert backend(web).read("a/b%20c", 250, 300) == bytes(range(250, 256))


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, ObjectNotFoundError), (401, AccessError), (403, AccessError), (400, StorageError), (503, UnreachableError)],
)
def test_each_refusal_has_its_error(web, status, kind):
    web.faults = [(status, {})]
    with pytest.raises(kind) as caught:
        backend(web).read("a/b%20c", 0, 1)
    assert caught.value.exit_code == 4
    assert type(caught.value) is kind


def test_the_wish_of_a_server_is_kept(web):
    web.faults = [(429, {"Retry-After": "17"})]
    with pytest.raises(UnreachableError) as caught:
        backend(web).size("a/b%20c")
    assert caught.value.retry_after_s == 17.0


def test_wishes_are_seconds_or_a_date():
    assert retry_after_s("0") == 0.0
    assert 50 < (retry_after_s(formatdate(time.time() + 60, usegmt=True)) or 0) <= 60
    assert retry_after_s(formatdate(time.time() - 60, usegmt=True)) == 0.0
    assert retry_after_s("soon") is None
    assert retry_after_s(None) is None


def test_a_server_that_hangs_up_or_is_not_there_may_be_asked_again(web):
    web.faults = [(0, {})]
    with pytest.raises(UnreachableError):
        backend(web).size("a/b%20c")
    with pytest.raises(UnreachableError):
        WebBackend("http://127.0.0.1:9").size("a")


def test_another_range_than_was_asked_for_is_refused(web):
    web.faults = [(206, {"Content-Range": "bytes 0-9/256"})]
    with pytest.raises(StorageError, match="another range"):
        backend(web).read("a/b%20c", 100, 110)
