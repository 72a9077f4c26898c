"""Every model of the zoo packs with the expected engine and answers like its source in a process without TensorFlow."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests import zoo
from tests.conftest import SHARED_MODELS

import glowplug
from glowplug.bundle.allowlist import check_graph
from glowplug.bundle.reader import open_bundle
from glowplug.bundle.verify import verify

pytestmark = pytest.mark.tensorflow

NOT_NATIVE = {"uses_file_op"}
INITIALIZED = {"counter", "silent_counter", "lstm", "gru_bidirectional", "embedding_masked", "control_flow"}
INITIALIZED |= {"text_vectorization", "string_lookup", "integer_lookup", "static_table", "vocabulary_file"}
INITIALIZED |= {"generation", "mutable_table", "nested_calls", "tf1_variables", "tf1_vocabulary"}


@pytest.mark.core
@pytest.mark.parametrize("name", sorted(zoo.BUILDERS))
def test_packs_and_is_proved_equal(name: str, bundle: Callable[[str], Path]) -> None:
    if name == "legacy_keras":
        pytest.importorskip("tf_keras")
    opened = open_bundle(bundle(name))
    manifest = opened.manifest
    assert manifest.engine == ("savedmodel" if name in NOT_NATIVE else "native")
    assert set(manifest.equivalence["calls"]) == set(manifest.signatures)
    assert all(count >= 2 for count in manifest.equivalence["calls"].values())
    assert manifest.equivalence["dtypes"].get("float32", {"max_rel": 0})["max_rel"] <= 1e-5
    assert bool(manifest.initializers) == (name in INITIALIZED)
    verify(bundle(name))
    if manifest.engine == "native":
        for portable in (False, True):
            check_graph(opened.graph_bytes(portable), manifest)
        assert not [n for n in check_graph(opened.graph_bytes(True), manifest).nodes.values() if n.op[0] == "_"]


@pytest.mark.parametrize("name", sorted(zoo.BUILDERS))
def test_portable_graph_gives_the_same_answers(
    name: str, bundle: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another machine or TensorFlow would run."""
    if name in NOT_NATIVE or name in ("random_noise",):
        pytest.skip("nothing to compare")
    if name == "legacy_keras":
        pytest.importorskip("tf_keras")
    from glowplug.convert.calls.samples import make_inputs, styles, words
    from glowplug.core.errors import InputError

    here = glowplug.load(bundle(name))
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "1")  # part of the fingerprint: as if on another machine
    there = glowplug.load(bundle(name))
    assert here.info.notes == ()
    assert "other TensorFlow settings" in there.info.notes[0]
    for signature, declared in here.signatures.items():
        for style in styles(declared.inputs, (words,)):
            inputs = make_inputs(declared.inputs, style, 2, seed=4)
            try:
                first = here.signature(signature)(inputs)
            except InputError:
                continue
            second = there.signature(signature)(inputs)
            for a, b in zip(_arrays(first), _arrays(second), strict=True):
                if a.dtype.kind in "fc":
                    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
                else:
                    np.testing.assert_array_equal(a, b)
            break
    here.close()
    there.close()


def _arrays(answer: object) -> list[np.ndarray]:
    return list(answer.values()) if isinstance(answer, dict) else [answer]  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["MobileNetV2", "EfficientNetB0"])
def test_application_families(name: str, bundle: Callable[[str], Path]) -> None:
    _check_application(bundle(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(zoo.APPLICATIONS))
def test_every_application_family(name: str, bundle: Callable[[str], Path]) -> None:
    _check_application(bundle(name))


def _check_application(directory: Path) -> None:
    manifest = open_bundle(directory).manifest
    assert manifest.engine == "native"
    assert manifest.equivalence["dtypes"]["float32"]["max_rel"] <= 1e-5


@pytest.mark.skipif(not SHARED_MODELS.is_dir(), reason="TensorFlow Serving's test models are not here")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("saved_model_half_plus_two_tf2_cpu/00000123", [2.5, 3.0, 4.5]),
        ("saved_model_half_plus_two_cpu/00000123", [2.5, 3.0, 4.5]),
        ("saved_model_half_plus_three/00000123", [3.5, 4.0, 5.5]),
        ("saved_model_half_plus_two_2_versions/00000123", [2.5, 3.0, 4.5]),
        ("saved_model_half_plus_two_2_versions/00000124", [2.5, 3.0, 4.5]),
    ],
)
def test_serving_test_models(path: str, expected: list[float], tmp_path: Path) -> None:
    packed = glowplug.pack(SHARED_MODELS / path, tmp_path / "half.glow", prefer="any")
    assert packed.manifest.engine == "native"
    with glowplug.load(tmp_path / "half.glow") as model:
        np.testing.assert_allclose(model(np.array([1.0, 2.0, 5.0], np.float32)), expected)


def test_answers_without_importing_tensorflow(bundle: Callable[[str], Path]) -> None:
    code = (
        "import sys, json, numpy as np, glowplug\n"
        "m = glowplug.load(sys.argv[1])\n"
        "y = m(np.array(['the quick', 'zzz 12', 'unseen'], object))\n"
        "print(json.dumps([y.tolist(), 'tensorflow' in sys.modules, 'keras' in sys.modules]))\n"
    )
    directory = str(bundle("text_vectorization"))
    done = subprocess.run([sys.executable, "-c", code, directory], capture_output=True, text=True, check=True)
    answers, *imported = json.loads(done.stdout)
    assert imported == [False, False]
    assert done.stderr == ""
    with glowplug.load(directory) as model:
        np.testing.assert_allclose(model(np.array(["the quick", "zzz 12", "unseen"], object)), answers, rtol=1e-6)


def test_shapes_other_than_declared_are_answered_like_stock(
    bundle: Callable[[str], Path], saved_model: Callable[[str], Path]
) -> None:
    import tensorflow as tf

    stock = tf.saved_model.load(str(saved_model("random_noise"))).signatures["serving_default"]
    with glowplug.load(bundle("random_noise")) as model:
        for shape in ([3, 7], [2], [2, 3, 4]):
            x = np.ones(shape, np.float32)
            answer = model(x)
            expected = stock(x=tf.constant(x))
            assert {k: v.shape for k, v in answer.items()} == {k: tuple(v.shape) for k, v in expected.items()}
            np.testing.assert_array_equal(answer["y"], expected["y"])
