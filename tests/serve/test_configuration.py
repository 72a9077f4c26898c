from __future__ import annotations

import os
import socket

import pytest

from glowplug.core.errors import LocationError, StorageError, UsageError
from glowplug.serve.models.config import Policy, at, from_argument, read_config_file
from glowplug.serve.models.sources import find_versions
from glowplug.serve.workers.batching import read_batching


def write(tmp_path, text):
    path = tmp_path / "file"
    path.write_text(text)
    return path


def test_policies():
    assert Policy().choose([1, 3, 2]) == [3]
    assert Policy("latest", 2).choose([1, 3, 2]) == [2, 3]
    assert Policy("all").choose([3, 1]) == [1, 3]
    assert Policy("specific", versions=(1, 9)).choose([1, 2]) == [1]


def test_a_config_file(tmp_path):
    path = write(
        tmp_path,
        """
        model_config_list: {
          config: { name: "a", base_path: "/models/a", model_platform: "tensorflow"
            model_version_policy: { specific: { versions: 4 versions: 5 } }
            version_labels: { key: "stable" value: 4 } }
          config: { name: "b" base_path: "/models/b" model_version_policy { latest { num_versions: 2 } } }
        }
        """,
    )
    first, second = read_config_file(path)
    assert (first.name, str(first.base_path), dict(first.labels)) == ("a", "/models/a", {"stable": 4})
    assert first.policy == Policy("specific", versions=(4, 5))
    assert second.policy == Policy("latest", 2)


def test_every_field_that_tensorflow_serving_takes(tmp_path):
    (model,) = read_config_file(
        write(
            tmp_path,
            """
            model_config_list { config {
              name: "a" base_path: "/models/a" model_type: TENSORFLOW model_platform: "tensorflow"
              model_version_policy { all {} } version_labels { key: "stable" value: 1 }
              logging_config {
                log_collector_config { type: "file" filename_prefix: "/tmp/requests" }
                sampling_config { sampling_rate: 0.1 attributes: 1 per_task_sampling_configs { dc: "a" task_index: 1 } }
              }
            } }
            """,
        )
    )
    assert (model.name, model.policy, model.unused) == ("a", Policy("all"), ("logging_config",))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("nonsense", "Error parsing text-format tensorflow.serving.ModelServerConfig"),
        (
            'model_config_list { config { name: "a" base_path: "/x" } config { name: "a" base_path: "/y" } }',
            "configured twice",
        ),
        ('model_config_list { config { name: "a b" base_path: "/x" } }', "cannot have spaces"),
        ('model_config_list { config { name: "a" model_platform: "other" } }', "only TensorFlow models"),
        ("custom_model_config { }", "custom_model_config is not supported"),
        ('model_config_list { config { name: "a" } }', "a model has no base_path: a"),
    ],
)
def test_config_files_that_are_refused(tmp_path, text, part):
    with pytest.raises(UsageError, match=part):
        read_config_file(write(tmp_path, text))


def test_a_config_file_that_is_not_there(tmp_path):
    with pytest.raises(StorageError, match="cannot read the configuration"):
        read_config_file(tmp_path / "none")


def test_models_on_the_command_line():
    assert from_argument("a=/x/y").name == "a"
    assert from_argument("/x/resnet.glow").name == "resnet"
    with pytest.raises(UsageError):
        from_argument("a/b=/x")


def test_models_at_urls(tmp_path):
    assert (from_argument("a=s3://b/x=y/").name, from_argument("a=s3://b/x=y/").url) == ("a", "s3://b/x=y")
    assert from_argument("s3://b/x=y/resnet.glow").name == "resnet"
    text = 'model_config_list { config { name: "a" base_path: "hdfs:///models/a" } }'
    assert read_config_file(write(tmp_path, text))[0].url == "hdfs:///models/a"
    for place in ("made-up://x", "https://user:hunter2@x/y", "s3://b/x?token=hunter2"):
        with pytest.raises(LocationError) as caught:
            read_config_file(write(tmp_path, text.replace("hdfs:///models/a", place)))
        assert "hunter2" not in str(caught.value)


def test_what_is_not_there_yet_may_become_a_base_path(tmp_path):
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    for place in (tmp_path, tmp_path / "later", tmp_path / "later" / "still", tmp_path / "dangling"):
        assert at("m", str(place)).base_path == place
        assert at("m", place.as_uri()).url == place.as_uri()


def test_what_can_never_be_a_base_path(tmp_path, socket_folder):
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(socket_folder / "socket"))
        places = [*(tmp_path / name for name in ("file", "file/below", "circle", "pipe")), socket_folder / "socket"]
        for place in places:
            for written in (str(place), place.as_uri()):
                with pytest.raises(UsageError, match="base path"):
                    at("m", written)
    for place in ("/" + "a" * 5000, "/a\0b"):
        with pytest.raises(UsageError, match="base path"):
            at("m", place)


def test_batching_parameters(tmp_path):
    text = "max_batch_size { value: 16 } batch_timeout_micros { value: 500 } allowed_batch_sizes: [1, 4, 16]"
    found = read_batching(write(tmp_path, text))
    assert (found.max_batch_size, found.timeout_s) == (16, 0.0005)
    assert [found.padded(rows) for rows in (1, 2, 5, 16)] == [1, 4, 16, 16]
    assert read_batching(None).max_batch_size == 1000


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("max_batch_size { value: 0 }", "out of range"),
        ("max_batch_size { value: 8 } allowed_batch_sizes: [8, 4]", "must rise"),
        ("max_batch_size { value: 8 } allowed_batch_sizes: [4]", "must rise"),
        ("pad_variable_length_inputs: true", "not supported"),
    ],
)
def test_batching_parameters_that_are_refused(tmp_path, text, part):
    with pytest.raises(UsageError, match=part):
        read_batching(write(tmp_path, text))


def test_versions_on_disk(tmp_path):
    for name in ("1", "00000007", "x", "3", "-4", "99999999999999999999"):
        (tmp_path / name).mkdir()
    (tmp_path / "1" / "bundle.json").write_text("{}")
    (tmp_path / "00000007" / "saved_model.pb").write_bytes(b"")
    (tmp_path / "99999999999999999999" / "bundle.json").write_text("{}")
    found = find_versions(tmp_path)
    assert {number: source.kind for number, source in found.items()} == {1: "bundle", 7: "saved_model"}
    nanoseconds = ("1795012742250146000", str((1 << 63) - 1), str(1 << 63), "0" * 60 + "5", "01")
    for name in nanoseconds:
        (tmp_path / name).mkdir()
        (tmp_path / name / "bundle.json").write_text("{}")
    found = find_versions(tmp_path)
    assert sorted(found) == [1, 5, 7, 1795012742250146000, (1 << 63) - 1]
    assert found[1].path.name == "1"
    assert list(find_versions(tmp_path / "1")) == [1]
    assert find_versions(tmp_path / "none") == {}
