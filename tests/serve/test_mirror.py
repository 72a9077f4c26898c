"""A mirror: which versions of a URL come here, when, and which do not. On a folder in the place of a storage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from glowplug.serve.models import mirror as mirroring
from glowplug.serve.models.config import Policy
from glowplug.serve.models.mirror import Mirror, Versions
from glowplug.serve.models.mirror_protocol import Order, read_status
from glowplug.store.backends.local import LocalBackend
from glowplug.store.location import parse
from glowplug.store.node_cache import entries
from glowplug.store.node_cache.folder import open_folder
from glowplug.store.push import push
from glowplug.store.signature import make_key_pair, read_private
from tests.fakes.web_server import serving


@pytest.fixture(autouse=True)
def no_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(tmp_path / "node-cache"))
    monkeypatch.setattr(mirroring, "SETTLE_S", 0.0)


@pytest.fixture
def saved_model_directory(shared_models: Path) -> Path:
    return shared_models / "saved_model_half_plus_two_cpu" / "00000123"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    place = tmp_path / "storage" / "half"
    place.mkdir(parents=True)
    return place


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "links"
    place.mkdir()
    return place


def order(base: Path, folder: Path, **wishes: object) -> Order:
    return Order(base.as_uri(), str(folder), **{"trust": True, **wishes})  # type: ignore[arg-type]


def links(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_an_order_comes_back_from_json() -> None:
    one = Order("s3://b/m", "/f", Policy("specific", versions=(1, 2)), (2,), 0.5, True, ("key.pub",), True)
    assert Order.parse(one.dump()) == one


def test_what_was_pushed_is_whole_at_once(saved_model_directory: Path, base: Path, folder: Path) -> None:
    for number in (1, 2, 3):
        push(saved_model_directory, f"{base.as_uri()}/{number}")
    mirror = Mirror(order(base, folder))
    assert mirror.look()
    assert links(folder) == ["3"]  # the newest alone is asked for
    assert (folder / "3" / "saved_model.pb").read_bytes() == (saved_model_directory / "saved_model.pb").read_bytes()
    assert read_status(folder).waiting == {}
    shutil.rmtree(base / "3")
    assert mirror.look()
    assert links(folder) == ["2"]


def test_several_versions_where_several_are_asked_for(saved_model_directory: Path, base: Path, folder: Path) -> None:
    for number in (1, 2, 3):
        push(saved_model_directory, f"{base.as_uri()}/{number}")
    Mirror(order(base, folder, policy=Policy("specific", versions=(1, 3)))).look()
    assert links(folder) == ["1", "3"]


def test_a_url_that_is_a_model_is_version_one(saved_model_directory: Path, base: Path, folder: Path) -> None:
    pushed = push(saved_model_directory, base.as_uri())
    Mirror(order(base, folder)).look()
    assert links(folder) == ["1"]
    pinned = Order(f"{base.as_uri()}@{pushed.digest}", str(folder), trust=True)
    assert Versions(parse(pinned.url)).find(1).stamp == pushed.digest
    Mirror(pinned).look()
    assert links(folder) == ["1"]


def test_a_version_in_the_middle_of_its_upload_is_not_linked(
    saved_model_directory: Path, base: Path, folder: Path
) -> None:
    shutil.copytree(saved_model_directory, base / "1")
    shutil.copytree(saved_model_directory, base / "2")
    graph = base / "2" / "saved_model.pb"
    whole = graph.read_bytes()
    graph.unlink()  # others may not write to it
    graph.write_bytes(whole[:-3])
    mirror = Mirror(order(base, folder))
    assert not mirror.look()  # nothing has been left alone for long enough yet
    assert links(folder) == []
    assert not mirror.look()
    assert links(folder) == ["1"]  # the older one, which is whole
    assert f"saved_model.pb has {len(whole) - 3} bytes of {len(whole)}" in read_status(folder).waiting[2]
    graph.write_bytes(whole)
    mirror.look()
    assert mirror.look()
    assert links(folder) == ["1", "2"]  # the older one stays for a while


def test_another_model_under_the_same_number_takes_its_place(
    shared_models: Path, saved_model_directory: Path, base: Path, folder: Path
) -> None:
    push(saved_model_directory, f"{base.as_uri()}/1")
    mirror = Mirror(order(base, folder))
    mirror.look()
    before = (folder / "1").resolve()
    push(next((shared_models / "saved_model_half_plus_three").iterdir()), f"{base.as_uri()}/1")
    mirror.look()
    assert (folder / "1").resolve() != before


def test_a_saved_model_needs_a_signature_or_a_word(
    saved_model_directory: Path, base: Path, folder: Path, tmp_path: Path
) -> None:
    make_key_pair(tmp_path / "key")
    push(saved_model_directory, f"{base.as_uri()}/1")
    assert not Mirror(order(base, folder, trust=False)).look()
    assert "--trust" in read_status(folder).waiting[1]
    assert links(folder) == []
    keys = (f"{tmp_path}/key.pub",)
    signed = Mirror(order(base, folder, trust=False, trusted_keys=keys))
    assert not signed.look()
    assert "signed" in read_status(folder).waiting[1]
    push(saved_model_directory, f"{base.as_uri()}/2", key=read_private(tmp_path / "key"))
    assert links(folder) == []
    signed.look()
    assert links(folder) == ["2"]


def test_what_is_linked_is_not_removed_from_the_node_cache(
    saved_model_directory: Path, base: Path, folder: Path
) -> None:
    pushed = push(saved_model_directory, f"{base.as_uri()}/1")
    mirror = Mirror(order(base, folder))
    mirror.look()
    assert not entries.remove_unused(open_folder(), pushed.digest)
    shutil.rmtree(base / "1")
    mirror.look()
    assert entries.remove_unused(open_folder(), pushed.digest)


def test_what_is_no_model_is_no_version(base: Path, folder: Path) -> None:
    for name in ("1", "text", "-1", "1.5"):
        (base / name).mkdir()
        (base / name / "readme").write_text("nothing")
    versions = Versions(parse(base.as_uri()))
    assert versions.numbers == [1]
    assert versions.find(1) is None
    assert versions.numbers == []
    assert Mirror(order(base, folder)).look()


def test_only_what_may_be_served_is_looked_into(
    saved_model_directory: Path, base: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chunks are not listed, and neither are versions that nobody asked for."""
    for number in (1, 2, 3):
        push(saved_model_directory, f"{base.as_uri()}/{number}")
    asked: list[str] = []
    real = LocalBackend.list

    def listing(self, prefix):
        asked.append(prefix.rpartition("/")[2])
        return real(self, prefix)

    monkeypatch.setattr(LocalBackend, "list", listing)
    assert Mirror(order(base, folder)).look()
    assert asked == ["3"]


def test_a_mirror_that_was_started_again_forgets_what_is_gone(
    saved_model_directory: Path, base: Path, folder: Path
) -> None:
    for number in (1, 2):
        push(saved_model_directory, f"{base.as_uri()}/{number}")
    everything = order(base, folder, policy=Policy("all"))
    Mirror(everything).look()
    assert links(folder) == ["1", "2"]
    shutil.rmtree(base / "1")
    Mirror(everything).look()
    assert links(folder) == ["2"]


def test_a_web_server_is_asked_for_no_more_than_whether_it_changed(saved_model_directory: Path) -> None:
    with serving() as web:
        push(saved_model_directory, f"{web.url}/m")
        web.requests.clear()
        before = Versions(parse(f"{web.url}/m")).find(1)
        assert [method for method, _ in web.requests] == ["HEAD"]
        assert Versions(parse(f"{web.url}/m")).find(1) == before
        web.objects["/m/glowplug.json"] += b" "
        assert Versions(parse(f"{web.url}/m")).find(1) != before
