"""One suite for every backend: the four operations, and what is missing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from glowplug.core.errors import AccessError, ObjectNotFoundError, SchemeError, StorageError, UnreachableError
from glowplug.store.backend import Place, open_backend
from glowplug.store.location import parse
from tests.fakes.web_server import serving

MB = 1 << 20


@pytest.fixture(params=["file", "memory", "http", "s3", pytest.param("hdfs", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    if request.param == "http":
        with serving() as web:
            yield open_backend(parse(f"{web.url}/some/folder"))
        return
    if request.param == "memory":
        pytest.importorskip("fsspec")
        url = f"memory://store/{tmp_path.name}/folder"
    elif request.param == "s3":
        pytest.importorskip("obstore")
        url = request.getfixturevalue("s3").url(f"{tmp_path.name}/folder")
    elif request.param == "hdfs":
        pytest.importorskip("hdfs_native")
        server = request.getfixturevalue("hdfs_server")
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        url = server.url(f"{tmp_path.name}/folder")
    else:
        url = (tmp_path / "some" / "folder").as_uri()
    yield open_backend(parse(url))


def test_what_is_written_is_read_in_ranges(place: Place) -> None:
    data = os.urandom(9 * MB)
    place.backend.write(place.child("a/b c"), memoryview(data))
    assert place.backend.size(place.child("a/b c")) == len(data)
    assert bytes(place.backend.read(place.child("a/b c"), 0, len(data))) == data
    assert bytes(place.backend.read(place.child("a/b c"), 5 * MB, 5 * MB + 7)) == data[5 * MB : 5 * MB + 7]
    assert bytes(place.backend.read(place.child("a/b c"), 9 * MB - 3, 10 * MB)) == data[-3:]
    pieces = [bytes(each) for each in place.backend.pieces(place.child("a/b c"), 3, 9 * MB - 2, 4 * MB)]
    assert b"".join(pieces) == data[3:-2]
    assert len(pieces) > 1
    place.backend.write(place.child("a/b c"), b"less")
    assert place.backend.size(place.child("a/b c")) == 4


def test_what_is_missing_is_said(place: Place) -> None:
    place.backend.write(place.child("a"), b"x")
    for path in ("b", "a/b"):
        with pytest.raises(ObjectNotFoundError):
            place.backend.size(place.child(path))
        with pytest.raises(ObjectNotFoundError):
            place.backend.read(place.child(path), 0, 1)
    assert list(place.backend.list(place.child("nothing"))) == []


def test_listings_have_everything_below(place: Place) -> None:
    if place.url.startswith("http"):
        pytest.skip("a web server has no listing")
    for name in ("x/1", "x/2/3", "xy/4", "5"):
        place.backend.write(place.child(name), name.encode())
    found = {one.path: one for one in place.backend.list(place.child("x"))}
    assert {path: one.size for path, one in found.items()} == {place.child("x/1"): 3, place.child("x/2/3"): 5}
    (one,) = place.backend.list(place.child("5"))
    assert (one.path, one.size) == (place.child("5"), 1)


def test_children_are_what_lies_directly_in_a_folder(place: Place) -> None:
    if place.url.startswith("http"):
        with pytest.raises(StorageError, match="cannot list"):
            place.backend.children(place.path)
        return
    began = time.time()
    for name in ("x/1", "x/2/3", "xy/4", "5"):
        place.backend.write(place.child(name), name.encode())
    found = {one.path: one for one in place.backend.children(place.path)}
    assert {path: one.is_folder for path, one in found.items()} == {
        place.child("x"): True,
        place.child("xy"): True,
        place.child("5"): False,
    }
    assert abs((found[place.child("5")].modified_s or 0.0) - began) < 3600
    assert list(place.backend.children(place.child("nothing"))) == []


def test_what_is_removed_is_gone_and_may_be_removed_again(place: Place) -> None:
    place.backend.write(place.child("a"), b"x")
    for _ in range(2):
        place.backend.remove(place.child("a"))
        with pytest.raises(ObjectNotFoundError):
            place.backend.size(place.child("a"))


def test_a_changed_object_has_another_tag(place: Place) -> None:
    place.backend.write(place.child("a"), b"one")
    (before,) = place.backend.list(place.child("a"))
    assert before.tag
    assert list(place.backend.list(place.child("a"))) == [before]
    place.backend.write(place.child("a"), b"two")
    (after,) = place.backend.list(place.child("a"))
    assert after.tag != before.tag


def test_wrong_credentials_and_missing_buckets_are_said(s3, monkeypatch) -> None:
    pytest.importorskip("obstore")
    with pytest.raises(ObjectNotFoundError):
        open_backend(parse("s3://no-such-bucket/a")).backend.size("a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    for operation in (lambda one: one.size("a"), lambda one: one.read("a", 0, 1), lambda one: list(one.list("a"))):
        with pytest.raises(AccessError):
            operation(open_backend(parse(s3.url("a"))).backend)


def test_no_credentials_at_all_are_said(monkeypatch, tmp_path) -> None:
    pytest.importorskip("obstore")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GLOWPLUG_RETRIES", "0")
    with pytest.raises((AccessError, UnreachableError)) as caught:
        open_backend(parse("s3://bucket/a")).backend.size("a")
    assert caught.value.exit_code == 4


def test_a_package_that_is_missing_is_named(monkeypatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.delitem(sys.modules, "glowplug.store.backends.cloud", raising=False)
    with pytest.raises(SchemeError, match=r"pip install 'glowplug\[s3\]'"):
        open_backend(parse("s3://bucket/a"))


def test_the_wish_of_a_cloud_storage_is_kept(monkeypatch) -> None:
    pytest.importorskip("obstore")
    with serving() as web:
        for name, value in {
            "AWS_ENDPOINT_URL": web.url,
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_REGION": "us-east-1",
            "GLOWPLUG_RETRIES": "0",
        }.items():
            monkeypatch.setenv(name, value)
        web.faults = [(503, {"Retry-After": "7"}), (503, {"Retry-After": "7"})]
        with pytest.raises(UnreachableError) as caught:
            open_backend(parse("s3://bucket/a")).backend.read("a", 0, 1)
        assert caught.value.retry_after_s == 7.0
        assert [method for method, _ in web.requests] == ["GET", "HEAD"]
        assert "X-Amz" not in str(caught.value)
        web.faults = [(500, {})]
        with pytest.raises(UnreachableError) as caught:
            open_backend(parse("s3://bucket/a")).backend.read("a", 0, 1)
        assert caught.value.retry_after_s is None


def test_words_in_the_names_of_a_user_mean_nothing() -> None:
    exceptions = pytest.importorskip("obstore").exceptions
    from glowplug.store.backends.cloud import explained

    path = "credentials/model/glowplug.json"
    missing = exceptions.NotFoundError(f"Object at location {path} not found: status: 404 Not Found")
    busy = exceptions.GenericError(f"Error performing GET https://host/b/{path} - status code: 503 Service Unavailable")
    none = exceptions.GenericError("Generic S3 error: the credential provider was not there")
    for error, kind in ((missing, ObjectNotFoundError), (busy, UnreachableError), (none, AccessError)):
        assert type(explained(f"s3://b/{path}", error)) is kind


def test_a_busy_storage_is_asked_once_how_long_it_wants_to_be_left_alone(monkeypatch) -> None:
    pytest.importorskip("obstore")
    from glowplug.store.backends.cloud import CloudBackend

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    backend, asked = CloudBackend("s3://bucket"), []
    monkeypatch.setattr(backend, "_ask_for_wish", lambda path: asked.append(path) or 17.0)
    assert [backend._wish("a") for _ in range(5)] == [17.0] * 5
    assert asked == ["a"]
