"""Fuzz target for what the server reads from its callers: messages, tensors, JSON bodies, examples, warm-up files.

    python tests/fuzz/fuzz_tensor_proto.py                 with atheris: coverage-guided, until stopped
    python tests/fuzz/fuzz_tensor_proto.py --runs 20000    without: seeded random changes to good requests

Whatever the bytes, a decoder returns or raises a `RequestError` (or protobuf's `DecodeError` where the bytes are no
message). What it returned must pass a worker's frame and come back, and be written and read again, unchanged.
Anything else ends the run with a traceback.
"""

from __future__ import annotations

import json
import random
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from driving import main, mutate
from google.protobuf.message import DecodeError

from glowplug.core.dtypes import BY_CODE, BY_NAME
from glowplug.core.errors import RequestError
from glowplug.core.manifest import Port, Signature, TensorSpec
from glowplug.runtime.tensor import numpy_dtype
from glowplug.serve.rest.reporting import error_body
from glowplug.serve.wire import examples, inference
from glowplug.serve.wire.array_types import dtype_name
from glowplug.serve.wire.json_predict import read_body, read_inputs, write_answer
from glowplug.serve.wire.limits import Limits
from glowplug.serve.wire.messages import message, serving
from glowplug.serve.wire.tensor_proto import decode, encode
from glowplug.serve.workers import packets, warmup

LIMITS = Limits(request_bytes=1 << 16, tensor_bytes=1 << 16)
SMALL = 64


def _signature(*dtypes: str) -> Signature:
    return Signature({f"x{n}": Port(TensorSpec(dtype, None), "x:0") for n, dtype in enumerate(dtypes)}, {})


SIGNATURES = [_signature(dtype) for dtype in ("float32", "float64", "float16", "bfloat16", "int8", "int64", "uint64")]
SIGNATURES += [_signature("bool"), _signature("string"), _signature("float32", "string"), _signature("complex64")]


def accept_tensor(proto: Any) -> bool:
    """Decode one tensor; if it was accepted, send it through a frame and a `TensorProto`."""
    try:
        array = decode(proto, "x", LIMITS)
    except RequestError:
        return False
    name = BY_CODE[proto.dtype].name
    assert dtype_name(array) == name, (dtype_name(array), name)
    require_same(array, through_frame(array))
    require_same(
        array,
        decode(message("tensorflow.TensorProto").FromString(encode(array, name).SerializeToString()), "x", LIMITS),
    )
    return True


def through_frame(array: Any) -> Any:
    """Return the array as a worker gets it."""
    received: list[Any] = []
    splitter = packets.Splitter(lambda kind, number, head, payload: received.append(packets.unpack(head, payload)))
    splitter.feed(b"".join(packets.pack(packets.CALL, 1, None, {"x": array})))
    return received[0][1]["x"]


def require_same(first: Any, second: Any) -> None:
    """Require the same type, shape and bytes."""
    assert (first.dtype, first.shape) == (second.dtype, second.shape)
    same = first.tolist() == second.tolist() if first.dtype == object else first.tobytes() == second.tobytes()
    assert same, (first.dtype, first.tolist(), second.tolist())


def predict_request(data: bytes) -> bool:
    """Read a message as gRPC's Predict does."""
    try:
        request = serving("PredictRequest").FromString(data)
    except DecodeError:
        return False
    return bool([accept_tensor(proto) for proto in request.inputs.values()].count(True))


def made_up_tensor(data: bytes) -> bool:
    """Read a tensor whose parts the bytes decide: what atheris can steer, while protobuf's own parser is opaque."""
    if len(data) < 8:
        return False
    proto = message("tensorflow.TensorProto")(dtype=data[0] % 34)
    for size in data[2 : 2 + data[1] % 5]:
        proto.tensor_shape.dim.add(size=size - 2 if size < 250 else (1 << (size - 192)) - 1)
    rest = data[6:]
    field = proto.DESCRIPTOR.fields[data[1] // 5 % len(proto.DESCRIPTOR.fields)]
    if field.name == "tensor_content" or data[5] & 1:
        proto.tensor_content = rest
    elif field.is_repeated and field.name not in ("string_val", "resource_handle_val", "variant_val"):
        values = np.frombuffer(rest[: len(rest) // 8 * 8], "<i8").tolist()
        for value in values:
            try:
                getattr(proto, field.name).append(value)
            except (ValueError, TypeError):  # protobuf refuses it: no caller can send it
                break
    else:
        proto.string_val.extend(rest.split(b"\0"))
    return accept_tensor(proto)


def json_predict(data: bytes) -> bool:
    """Read a REST body for signatures of several types; write what it held as an answer."""
    try:
        body = read_body(data)
    except RequestError as error:
        json.loads(error_body(str(error)))
        return False
    json.loads(error_body(body.signature))
    accepted = False
    for signature in SIGNATURES:
        try:
            inputs = read_inputs(body, signature, LIMITS)
        except RequestError as error:
            json.loads(error_body(str(error)))
            continue
        accepted = True
        for form in ("row", "columnar"):
            try:
                json.loads(write_answer(form, inputs))  # type: ignore[arg-type]
            except RequestError:
                continue
        for array in inputs.values():
            require_same(array, through_frame(array))
    return accepted


def json_examples(data: bytes) -> bool:
    """Read a REST body of classify and regress."""
    try:
        _, made = examples.read_json(data)
        found = examples.serialized(made)
    except RequestError as error:
        json.loads(error_body(str(error)))
        return False
    for one in found:
        message("tensorflow.Example").FromString(one)
    classified = inference.classification({"classes": found.reshape(-1, 1)}, len(found))
    json.loads(inference.classification_json(classified))
    return True


def example_input(data: bytes) -> bool:
    """Read the `Input` of gRPC's Classify."""
    try:
        found = examples.serialized(serving("ClassificationRequest").FromString(data).input)
    except (RequestError, DecodeError):
        return False
    return bool(len(found))


def warmup_file(data: bytes) -> bool:
    """Read a warm-up file: the bytes as one record, and as the file itself."""
    accepted = False
    record = struct.pack("<QI", len(data), 0) + data + bytes(4)
    with tempfile.NamedTemporaryFile() as file:
        for content in (record, data):
            Path(file.name).write_bytes(content)
            try:
                accepted |= bool(list(warmup.from_serving_file(Path(file.name), LIMITS)))
            except (RequestError, DecodeError):
                continue
    return accepted


TARGETS = (predict_request, made_up_tensor, json_predict, json_examples, example_input, warmup_file)


def one_input(data: bytes) -> None:
    """The entry point for atheris."""
    for target in TARGETS:
        target(data)


def _requests() -> list[bytes]:
    found = []
    for name in BY_NAME:
        array = np.array([[b"ab"], [b""]], object) if name == "string" else np.arange(2).reshape(2, 1)
        request = serving("PredictRequest")()
        request.model_spec.name = "m"
        request.inputs["x"].CopyFrom(encode(array.astype(numpy_dtype(name)), name))
        found.append(request.SerializeToString())
        if name != "string":
            proto = request.inputs["x"]
            proto.CopyFrom(message("tensorflow.TensorProto")(dtype=proto.dtype, tensor_shape=proto.tensor_shape))
            proto.tensor_content = bytes(2 * BY_NAME[name].itemsize)
            found.append(request.SerializeToString())
    return found


def _logs() -> list[bytes]:
    log, inferred = serving("PredictionLog")(), serving("PredictionLog")()
    log.predict_log.request.MergeFromString(REQUESTS[0])
    inferred.classify_log.request.MergeFromString(CLASSIFY)
    return [log.SerializeToString(), inferred.SerializeToString()]


REQUESTS = _requests()
BODIES = [
    b'{"instances": [1.0, 2.5e3, -7]}',
    b'{"signature_name": "s", "instances": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]}',
    b'{"instances": [{"x0": [0.5, NaN], "x1": "ab"}, {"x0": [Infinity, 1], "x1": {"b64": "aGk="}}]}',
    b'{"inputs": {"x0": [[true], [false]]}}',
    b'{"inputs": [{"b64": "aGk="}, "\\u00e9", "\\ud83d\\ude00"]}',
    b'{"inputs": 9223372036854775807}',
]
EXAMPLES = [b'{"context": {"a": [1, 2]}, "examples": [{"x": 1.5, "s": ["a", {"b64": "aGk="}]}, {"x": [true]}]}']
CLASSIFY = serving("ClassificationRequest")(input=examples.read_json(EXAMPLES[0])[1]).SerializeToString()
LOGS = _logs()
PIECES = [b"{", b"}", b"[", b"]", b'"', b",", b":", b"null", b"true", b"-1", b"1e999", b"9" * 30, b"NaN", b"-Infinity"]
PIECES += [b"[" * 40, b'{"b64": "', b"\\ud800", b"\xff", b"\xff" * 9 + b"\x01", b"\x12\x00", b"\x08", b"\x80\x80\x04"]
PIECES += [b'"instances"', b'"inputs"', b"\0", b"\x1a", b"\x22", b"\x42"]


def run(runs: int, seed: int) -> str:
    """Try `runs` random inputs of each kind; return how many were accepted."""
    chance = random.Random(seed)
    sources = {
        predict_request: REQUESTS,
        made_up_tensor: [b""],
        json_predict: BODIES,
        json_examples: EXAMPLES,
        example_input: [CLASSIFY],
        warmup_file: LOGS,
    }
    accepted = dict.fromkeys((target.__name__ for target in TARGETS), 0)
    for _ in range(runs):
        for target, goods in sources.items():
            data = chance.choice(goods)
            data = mutate(data, chance, PIECES) if data else chance.randbytes(chance.randrange(SMALL))
            accepted[target.__name__] += target(data)
    return f"{runs} runs, seed {seed}: accepted {accepted}"


if __name__ == "__main__":
    main(__doc__, one_input, run, [*REQUESTS, *BODIES, *EXAMPLES, CLASSIFY, *LOGS])
