"""What a user may write where something is stored, and that no secret in it is ever repeated."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glowplug.core.errors import LocationError
from glowplug.store.location import Location, install_hint, is_url, parse

DIGEST = "0123456789abcdef" * 4
SECRET = "hunter2SECRET"


@pytest.mark.parametrize(
    ("text", "scheme", "url"),
    [
        ("s3://bucket/models/a", "s3", "s3://bucket/models/a"),
        ("S3://bucket/models/a/", "s3", "s3://bucket/models/a"),
        ("s3a://bucket/a", "s3", "s3://bucket/a"),
        ("gcs://bucket/a", "gs", "gs://bucket/a"),
        ("az://container/a", "az", "az://container/a"),
        ("abfss://container@account.dfs.core.windows.net/a", "az", "abfss://container@account.dfs.core.windows.net/a"),
        ("https://host:8333/bucket/a@b.glow", "https", "https://host:8333/bucket/a@b.glow"),
        ("hdfs:///models/a", "hdfs", "hdfs:///models/a"),
        ("hdfs://alice@namenode:8020/a", "hdfs", "hdfs://alice@namenode:8020/a"),
        ("file:///mnt/ceph%20fs/a/", "file", "file:///mnt/ceph%20fs/a"),
        ("/mnt/ceph fs/a", "file", "file:///mnt/ceph%20fs/a"),
        ("/mnt/100%25", "file", "file:///mnt/100%2525"),
    ],
)
def test_what_is_written_and_where_that_is(text: str, scheme: str, url: str) -> None:
    assert parse(text) == Location(scheme, url, None)
    pinned = parse(f"{text}@{DIGEST}")
    assert pinned == Location(scheme, url, DIGEST)
    assert parse(str(pinned)) == pinned


@pytest.mark.parametrize("text", ["model.glow", "./a b", "/tmp/ä@home", "/tmp/50%", "~x"])
def test_a_path_comes_back_as_it_was(text: str) -> None:
    assert not is_url(text)
    assert parse(text).path == Path(text).absolute()


@pytest.mark.parametrize(
    "text",
    [
        f"https://user:{SECRET}@host/a",
        f"https://{SECRET}@host/a",
        f"s3://AKIA:{SECRET}@bucket/a",
        f"s3://{SECRET}@bucket/a",
        f"hdfs://alice:{SECRET}@namenode/a",
        f"hdfs://alice%3A{SECRET}@namenode/a",
        f"file://user:{SECRET}@host/a",
        f"https://host/a?X-Amz-Signature={SECRET}",
        f"https://host/a?{SECRET}",
        f"https://host/a#access_token={SECRET}",
        f"az://container/a?sv=2024&sig={SECRET}",
        f"made-up://user:{SECRET}@host/a?token={SECRET}",
        f"simplecache::https://user:{SECRET}@host/a",
        f"https:// user:{SECRET}@host/a",
        f"https://user:{SECRET}@host/a\nforged line",
        f"https://a@user:{SECRET}@host/a",
        f"https://user:{SECRET}@host/a@{DIGEST}",
    ],
)
def test_a_secret_is_refused_and_never_shown(text: str) -> None:
    with pytest.raises(LocationError) as caught:
        parse(text)
    error = caught.value
    assert SECRET not in str(error)
    assert SECRET not in repr(error)
    assert error.remedy
    assert error.exit_code == 4
    assert "\n" not in str(error)


@given(st.text(alphabet=st.sampled_from("ab:/@?#%.\\ \n[]"), max_size=12))
def test_whatever_stands_before_the_host_is_not_shown(noise: str) -> None:
    text = f"https://{noise}{SECRET}@host/a"
    if "/" in noise:  # it may have ended the host, so that the rest is a path
        with contextlib.suppress(LocationError):
            assert "@" not in parse(text).url.removeprefix("https://").partition("/")[0]
        return
    with pytest.raises(LocationError) as caught:
        parse(text)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("text", ["s3://", "https:///path", "s3://bucket/a/../b", "://a", "file://elsewhere/a", ""])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(LocationError):
        parse(text)


def test_an_unknown_scheme_names_what_is_known() -> None:
    with pytest.raises(LocationError, match=r"made-up://; Glowplug knows az, file, gs, hdfs, http, https, s3, viewfs"):
        parse("made-up://host/a")


def test_without_fsspec_an_unknown_scheme_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['fsspec'] = None\n"
        "from glowplug.store.location import parse\n"
        "try: parse('sftp://host/a')\n"
        "except Exception as error: print(error)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "pip install 'glowplug[store]'" in told


@pytest.mark.parametrize(("scheme", "extra"), [("s3", "s3"), ("https", "s3"), ("hdfs", "hdfs"), ("sftp", "store")])
def test_each_scheme_has_an_extra(scheme: str, extra: str) -> None:
    assert install_hint(scheme) == f"pip install 'glowplug[{extra}]'"


def test_what_lies_below() -> None:
    assert parse(f"s3://bucket/base@{DIGEST}").child("3") == Location("s3", "s3://bucket/base/3")
    assert parse("/mnt/a b").child("3").path == Path("/mnt/a b/3")
    assert parse("s3://bucket/a/name").name == "name"


@pytest.mark.parametrize(
    "url",
    ["http://[::1/x", "s3://[b/x", "http://host:99999/x", "http://host:abc/x", "s3://b/a/%2e%2e/c", "s3://b/a%00c"],
)
def test_urls_that_no_client_could_open_are_refused(url):
    with pytest.raises(LocationError) as caught:
        parse(url)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("name", [b"caf\xe9", b"a\xff%ff b", "café".encode()])
def test_a_path_that_is_no_text_comes_back_as_it_was(name: bytes, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/" + name
    assert os.fsencode(parse(os.fsdecode(path)).path) == path
    assert os.fsencode(parse(parse(os.fsdecode(path)).url).path) == path
    assert os.fsencode(parse(os.fsdecode(path)).child("x").path) == path + b"/x"


@pytest.mark.parametrize(
    "text", ["s3:/bucket/x", "https:/user:SECRET@host/x", "https//user:SECRET@host/x", "S3:/b/SECRET", "file:/SECRET"]
)
def test_a_url_that_lacks_a_sign_is_no_path(text: str) -> None:
    assert is_url(text)
    with pytest.raises(LocationError, match="write it as SCHEME://HOST/PATH") as caught:
        parse(text)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("text", ["./s3:/bucket", "s3/bucket", "models/https:/x", "s3", "c:/x", "azure", "https"])
def test_a_path_that_looks_a_little_like_one_is_a_path(text: str) -> None:
    assert not is_url(text)
    assert parse(text).path == Path(text).absolute()
