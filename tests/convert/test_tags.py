"""SavedModels with several graphs, or with one that has other tags than `serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glowplug
from glowplug.bundle.reader import open_bundle
from glowplug.convert.job import Job, Order
from glowplug.core.errors import UsageError

pytestmark = pytest.mark.tensorflow


def save(directory: Path, *graphs: tuple[str, ...]) -> Path:
    """A model of TensorFlow 1 with a graph for each set of tags: the first adds 1, the next 2, and so on."""
    import tensorflow as tf

    v1 = tf.compat.v1
    builder = v1.saved_model.Builder(str(directory))
    for place, tags in enumerate(graphs, start=1):
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [None], "x")
            added = v1.get_variable("v", [], initializer=v1.zeros_initializer())
            y = x + added + place
            session.run(v1.global_variables_initializer())
            define = v1.saved_model.signature_def_utils.predict_signature_def({"x": x}, {"y": y})
            add = builder.add_meta_graph_and_variables if place == 1 else builder.add_meta_graph
            first = (session, list(tags)) if place == 1 else (list(tags),)
            add(*first, signature_def_map={"serving_default": define})
    builder.save()
    return directory


def packed(source: Path, folder: Path, **options: Any) -> float:
    folder.mkdir()
    Job(Order(folder, source, **options), lambda stage: None).run()
    assert open_bundle(folder).manifest.provenance["name"] == source.name
    with glowplug.load(folder, trust=True) as model:
        answer = model(np.zeros(1, np.float32))
        assert isinstance(answer, np.ndarray)
        return float(answer[0])


def test_several_graphs(tmp_path: Path) -> None:
    source = save(tmp_path / "m", ("serve",), ("train",), ("serve", "gpu"), ())
    assert packed(source, tmp_path / "a") == 1
    assert packed(source, tmp_path / "b", tags=("train",)) == 2
    assert packed(source, tmp_path / "c", tags=("gpu", "serve")) == 3
    assert packed(source, tmp_path / "d", tags=()) == 4
    assert packed(source, tmp_path / "e", tags=("train",), engine="savedmodel") == 2
    with pytest.raises(UsageError, match="it has serve; train; gpu,serve; no tags"):
        packed(source, tmp_path / "f", tags=("tpu",))


def test_the_only_graph_needs_no_tags(tmp_path: Path) -> None:
    assert packed(save(tmp_path / "gpu", ("serve", "gpu")), tmp_path / "a") == 1
    assert packed(save(tmp_path / "train", ("train",)), tmp_path / "b", engine="savedmodel") == 1
    assert packed(save(tmp_path / "none", ()), tmp_path / "c") == 1


def test_which_of_several_must_be_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="several graphs: train; eval; choose one with --tags"):
        packed(save(tmp_path / "m", ("train",), ("eval",)), tmp_path / "a")


def test_the_command_line_takes_them(tmp_path: Path) -> None:
    from glowplug.cli.main import main

    source = save(tmp_path / "m", ("serve",), ("serve", "gpu"))
    assert main(["pack", str(source), "-o", str(tmp_path / "m.glow"), "--tags", "serve,gpu"]) == 0
    with glowplug.load(tmp_path / "m.glow") as model:
        np.testing.assert_array_equal(model(np.zeros(1, np.float32)), [2])
