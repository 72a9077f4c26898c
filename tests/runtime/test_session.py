"""Session settings, statuses and closing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from glowplug.core import errors
from glowplug.runtime.config import SessionConfig
from glowplug.runtime.graph import Graph
from glowplug.runtime.session import Session
from glowplug.runtime.tensor import Tensor

pytestmark = [pytest.mark.tensorflow, pytest.mark.core]


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("threads", [0, 1, 300])
def test_config_bytes_are_what_tensorflow_reads(optimize: bool, threads: int) -> None:
    from tensorflow.core.protobuf import config_pb2

    proto = config_pb2.ConfigProto.FromString(SessionConfig(threads, threads + 1, optimize).to_bytes())
    assert dict(proto.device_count) == {"GPU": 0}
    assert (proto.intra_op_parallelism_threads, proto.inter_op_parallelism_threads) == (threads, threads + 1)
    assert proto.graph_options.rewrite_options.disable_meta_optimizer == (not optimize)
    assert proto.graph_options.optimizer_options.opt_level == (0 if optimize else -1)


def graph_bytes() -> bytes:
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, None, "x")
        tf.identity(x * 2.0, "y")
        tf.debugging.assert_positive(x, name="check")
    data: bytes = graph.as_graph_def().SerializeToString()
    return data


def test_runs_and_closes() -> None:
    session = Session(Graph(graph_bytes()), SessionConfig())
    call = session.prepare(["x:0"], ["y:0"])
    tensor = Tensor.from_array(np.array([1.0, 2.0], np.float32), "float32")
    assert call.run([tensor])[0].tolist() == [2.0, 4.0]
    session.close()
    session.close()
    with pytest.raises(errors.ClosedError):
        call.run([tensor])
    with pytest.raises(errors.ClosedError):
        session.prepare(["x:0"], ["y:0"])


@pytest.mark.parametrize("name", ["nope", "nope:0", "y:1", "y:-1"])
def test_unknown_tensors(name: str) -> None:
    graph = Graph(graph_bytes())
    with pytest.raises(errors.UnknownNodeError):
        graph.output(name)
    graph.close()


def test_bad_graph_has_tensorflows_words() -> None:
    with pytest.raises(errors.TensorFlowError, match="INVALID_ARGUMENT") as caught:
        Graph(b"\xff\xff\xff")
    assert caught.value.code == "INVALID_ARGUMENT"


def test_saved_model_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(errors.TensorFlowError, match="NOT_FOUND"):
        Session.from_saved_model(tmp_path, SessionConfig(), ("serve",))


def test_a_path_that_is_a_pattern_of_names(saved_model: Callable[[str], Path], tmp_path: Path) -> None:
    """TensorFlow looks for the files of a checkpoint by a pattern, and does not find those of this folder."""
    folder = tmp_path / "[a] * b?"
    shutil.copytree(saved_model("dense"), folder)
    before = len(list(Path("/proc/self/fd").iterdir()))
    session, _ = Session.from_saved_model(folder, SessionConfig(), ("serve",))
    session.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_saved_model_gives_its_signatures(saved_model: Callable[[str], Path]) -> None:
    from tensorflow.core.protobuf import meta_graph_pb2

    session, serialized = Session.from_saved_model(saved_model("scalar"), SessionConfig(), ("serve",))
    meta = meta_graph_pb2.MetaGraphDef.FromString(serialized)
    assert "serving_default" in meta.signature_def
    session.close()
