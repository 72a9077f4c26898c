"""Flags of TensorFlow Serving about single models: batching of each, graphs by tags, operations of tensorflow_text."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from glowplug.cli import serve
from glowplug.cli.options import VerbParser
from glowplug.cli.serving_flags import IGNORED, given
from glowplug.core.errors import UsageError
from tests.serve.server import Server

SPECIAL = """
import sys
import tensorflow as tf

v1 = tf.compat.v1
for tags, factor in ((["serve"], 2.0), (["special", "other"], 3.0)):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None], name="x")
        y = tf.multiply(x, factor, name="y")
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
        if tags == ["serve"]:
            builder = v1.saved_model.Builder(sys.argv[1])
            builder.add_meta_graph_and_variables(session, tags, {"serving_default": signature})
        else:
            builder.add_meta_graph(tags, {"serving_default": signature})
builder.save()
"""

TEXT = """
import sys
import tensorflow as tf
import tensorflow_text

class Words(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def __call__(self, text):
        return {"words": tensorflow_text.WhitespaceTokenizer().tokenize(text).to_tensor("")}

model = Words()
tf.saved_model.save(model, sys.argv[1], {"serving_default": model.__call__})
"""


def saved(script, target):
    subprocess.run([sys.executable, "-c", script, target], check=True, capture_output=True)
    return target.parent


def parsed(*words):
    parser = VerbParser()
    serve.add_arguments(parser)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(words)


@pytest.mark.tensorflow
def test_each_model_has_its_own_batching(shared_models, tmp_path):
    for name, text in (("joined", "max_batch_size { value: 4 } allowed_batch_sizes: 4"), ("alone", "")):
        target = tmp_path / name / "1"
        shutil.copytree(shared_models / "saved_model_half_plus_two_cpu" / "00000123", target)
        if text:
            (target / "batching_params.pbtxt").write_text(text)
    everywhere = tmp_path / "everywhere.txt"
    everywhere.write_text("max_batch_size { value: 16 } allowed_batch_sizes: 16")
    flags = ["--enable_batching", "--enable_per_model_batching_parameters", f"--batching_parameters_file={everywhere}"]
    with Server(f"joined={tmp_path / 'joined'}", f"alone={tmp_path / 'alone'}", *flags, "--no-pack") as server:
        for name in ("joined", "alone"):
            assert server.post(f"/v1/models/{name}:predict", {"instances": [2.0]}) == (200, {"predictions": [3.0]})
        page = server.request("GET", "/monitoring/prometheus/metrics")[1].decode()
    padding = dict(re.findall(r'padding_rows_total\{[^}]*model_name="(\w+)"[^}]*\} (\S+)', page))
    assert float(padding["joined"]) == 3
    assert float(padding.get("alone", 0)) == 0


def test_batching_for_each_model_needs_batching(tmp_path):
    with pytest.raises(UsageError, match="add --enable_batching"):
        serve.read_settings(parsed(f"m={tmp_path}", "--enable_per_model_batching_parameters"))


@pytest.mark.tensorflow
def test_a_graph_is_chosen_by_its_tags_also_when_it_is_packed(tmp_path):
    folder = saved(SPECIAL, tmp_path / "model" / "1")
    flags = [f"--model_base_path={folder}", "--model_name=m", "--pack-cache", tmp_path / "packed"]
    for chosen, factor in (([], 2.0), (["--saved_model_tags=other,special"], 3.0)):
        with Server(*flags, *chosen) as server:
            assert server.post("/v1/models/m:predict", {"instances": [1.0]}) == (200, {"predictions": [factor]})
            server.wait_event("packed")
            assert server.post("/v1/models/m:predict", {"instances": [1.0]}) == (200, {"predictions": [factor]})


def test_a_graph_needs_a_tag(tmp_path):
    with pytest.raises(UsageError, match="a graph needs a tag"):
        serve.read_settings(parsed(f"m={tmp_path}", "--saved_model_tags=,"))


@pytest.mark.tensorflow
@pytest.mark.skipif(importlib.util.find_spec("tensorflow_text") is None, reason="tensorflow_text is not installed")
def test_operations_of_tensorflow_text_need_no_flag(tmp_path):
    folder = saved(TEXT, tmp_path / "model" / "1")
    call = ("/v1/models/m:predict", {"instances": ["two words", "one"]})
    words = {"predictions": [["two", "words"], ["one", ""]]}
    flags = [f"--model_base_path={folder}", "--model_name=m", "--pack-cache", tmp_path / "packed"]
    with Server(*flags) as server:
        assert server.post(*call) == (200, words)
        server.wait_event("packed")
        assert server.post(*call) == (200, words)
    with Server(*flags) as server:  # from the bundle, which names the package
        assert server.post(*call) == (200, words)


def test_flags_without_effect_are_in_the_help_and_in_the_reference():
    parser = VerbParser()
    serve.add_arguments(parser)
    text = " ".join(parser.format_help().split())
    assert "taken and change nothing" in text
    reference = (Path(__file__).parents[2] / "docs" / "reference" / "serve.md").read_text(encoding="utf-8")
    assert [row for row in re.findall(r"^\| `--(\w+)` \| (.*) \|$", reference, re.MULTILINE) if row[0] in IGNORED] == [
        *IGNORED.items()
    ]
    for flag, reason in IGNORED.items():
        assert f"--{flag}" in text
        assert reason in text.replace("- ", "-")


def test_flags_without_effect_are_named_when_they_are_given():
    args = parsed("--enable_profiler", "--grpc_max_threads=4", "--num_load_threads", "2", "m=/x")
    assert given(args) == ["--enable_profiler", "--grpc_max_threads", "--num_load_threads"]
    assert args.models == ["m=/x"]
    assert given(parsed("m=/x")) == []
