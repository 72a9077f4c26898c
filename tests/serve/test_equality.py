"""REST and gRPC answer what stock TensorFlow answers, for bundles and for plain SavedModels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from glowplug.serve.wire.json_tensor import to_json
from glowplug.serve.wire.limits import Limits
from glowplug.serve.wire.tensor_proto import decode
from tests.serve.server import Server

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

ZOO = ["dense", "types", "string_lookup", "two_in_two_out", "several_signatures", "dense_float16"]


def stock_answers(directory: Path, rows: int):
    """Yield signature, inputs and what stock TensorFlow answers."""
    import tensorflow as tf

    model = tf.saved_model.load(str(directory))
    random = np.random.default_rng(1)
    for name, call in model.signatures.items():
        specs = call.structured_input_signature[1]
        if list(specs) == ["inputs"] and specs["inputs"].dtype == tf.string:
            continue  # serialized examples, which test_rest covers
        inputs = {}
        for key, spec in specs.items():
            shape = [rows, 1] if spec.shape.rank is None else [rows if size is None else size for size in spec.shape]
            if spec.dtype == tf.string:
                inputs[key] = random.choice([b"a", b"b", b"the", b"other"], shape).astype(object)
            elif spec.dtype == tf.bool:
                inputs[key] = random.random(shape) > 0.5
            else:
                inputs[key] = (random.random(shape) * 3).astype(spec.dtype.as_numpy_dtype)
        outputs = {key: value.numpy() for key, value in call(**{k: tf.constant(v) for k, v in inputs.items()}).items()}
        yield name, inputs, outputs


def check(server: Server, directory: Path, *, exact: bool) -> int:
    compared = 0
    for name, inputs, wanted in stock_answers(directory, 3):
        from glowplug.serve.wire.messages import serving
        from glowplug.serve.wire.tensor_proto import encode

        request = serving("PredictRequest")()
        request.model_spec.name, request.model_spec.signature_name = "m", name
        for key, array in inputs.items():
            request.inputs[key].CopyFrom(encode(array, "string" if array.dtype == object else str(array.dtype)))
        answer = server.call("/tensorflow.serving.PredictionService/Predict", request, "PredictResponse")
        found = {key: decode(proto, key, Limits()) for key, proto in answer.outputs.items()}
        same(found, wanted, exact)
        compared += 1
        if any(array.dtype.kind == "c" for array in [*inputs.values(), *wanted.values()]):
            continue  # JSON has no form for them
        body = {"signature_name": name, "inputs": {key: plain(array) for key, array in inputs.items()}}
        status, document = server.post("/v1/models/m:predict", body)
        assert status == 200, document
        columns = document["outputs"] if len(wanted) > 1 else {next(iter(wanted)): document["outputs"]}
        for key, array in found.items():
            written = json.loads(json.dumps(plain(array)))
            assert columns[key] == written
    return compared


def plain(array):
    value = to_json(array, "")
    return (
        value.tolist()
        if not isinstance(value, list) and array.dtype.kind not in "f"
        else (value if isinstance(value, list) else np.asarray(value).astype(str).astype(np.float64).tolist())
    )


def same(found, wanted, exact):
    assert set(found) == set(wanted)
    for key, array in wanted.items():
        assert found[key].shape == array.shape
        if array.dtype.kind in "fc" and not exact:
            np.testing.assert_allclose(found[key], array, rtol=1e-3 if array.dtype.itemsize < 4 else 1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(found[key], array)


@pytest.mark.parametrize("model", ZOO)
def test_bundles_of_the_zoo(model, saved_model, packed):
    source = saved_model(model)
    with Server(f"m={packed(source)}", "--trust") as server:
        assert check(server, source, exact=False)


@pytest.mark.parametrize("name", ["saved_model_half_plus_two_cpu", "saved_model_half_plus_two_tf2_cpu"])
@pytest.mark.parametrize("kind", ["bundle", "plain"])
def test_the_test_models_of_tensorflow_serving(name, kind, shared_models, packed):
    source = shared_models / name / "00000123"
    served = packed(source) if kind == "bundle" else shared_models / name
    with Server(f"m={served}", "--no-pack") as server:
        assert check(server, source, exact=True)


@pytest.mark.parametrize("kind", ["bundle", "plain"])
def test_a_model_that_only_the_loader_of_tensorflow_1_takes(kind, shared_models, packed):
    """`tf.saved_model.load` refuses the shapes of half_plus_three; its answers are those of a session."""
    import tensorflow as tf

    source = shared_models / "saved_model_half_plus_three" / "00000123"
    x = np.arange(5, dtype=np.float32).reshape(-1, 1)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(source))
        declared = loaded.signature_def["serving_default"]
        wanted = session.run(declared.outputs["y"].name, {declared.inputs["x"].name: x})
    with Server(f"m={packed(source) if kind == 'bundle' else source.parent}", "--no-pack") as server:
        found = decode(server.predict("m", {"x": x}).outputs["y"], "y", Limits())
    np.testing.assert_array_equal(found, wanted)
