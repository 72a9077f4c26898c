"""The real clients of the Open Inference Protocol, as their users write them: run by `test_v2_clients.py` in an
environment of their own. Arguments: REST port, gRPC port, which client. Prints what it saw as JSON.

The clients of Triton and KServe register messages of the same names: one process each.
"""

from __future__ import annotations

import asyncio
import json
import queue
import sys

import numpy as np

REST, GRPC = (f"127.0.0.1:{port}" for port in sys.argv[1:3])
VALUES = {
    "UINT8": np.array([[0, 255]], np.uint8),
    "INT32": np.array([[-(1 << 31), (1 << 31) - 1]], np.int32),
    "INT64": np.array([-(1 << 63), (1 << 63) - 1], np.int64),
    "FP32": np.array([[1.5], [-np.inf], [np.nan]], np.float32),
    "FP64": np.array(1e-320),
    "BOOL": np.array([True, False]),
    "BYTES": np.array([[b"\xff\x00", b""], ["grüße".encode(), b"x"]], object),
}
SIGNATURES = {"UINT8": "uint8", "INT32": "int32", "INT64": "int64", "FP32": "float32", "FP64": "float64"}
SIGNATURES |= {"BOOL": "bool", "BYTES": "string"}


def same(seen: np.ndarray, sent: np.ndarray) -> bool:
    return (
        seen.shape == sent.shape
        and sent.dtype in (object, seen.dtype)
        and bool(np.array_equal(seen, sent, equal_nan=sent.dtype.kind == "f"))
    )


def triton(module: object, client: object, kinds: list[dict]) -> dict:
    seen = {"live": client.is_server_live(), "ready": client.is_server_ready()}
    seen["models"] = [client.is_model_ready("echo"), client.is_model_ready("echo", "1")]
    metadata = client.get_model_metadata("echo") if "http" in module.__name__ else None
    if metadata is None:
        found = client.get_model_metadata("echo")
        metadata = {"versions": list(found.versions), "inputs": [{"datatype": found.inputs[0].datatype}]}
    seen["metadata"] = [metadata["versions"], metadata["inputs"][0]["datatype"]]
    for datatype, array in VALUES.items():
        for kind in kinds:
            text = kind.get("binary") is False
            if text and datatype == "BYTES":
                array = np.array([["grüße".encode(), b""]], object)  # noqa: PLW2901 - JSON holds text
            given = module.InferInput("x", array.shape, datatype)
            wanted = module.InferRequestedOutput("y")
            if "binary" in kind:
                given.set_data_from_numpy(array, binary_data=kind["binary"])
                wanted = module.InferRequestedOutput("y", binary_data=kind["binary"])
            else:
                given.set_data_from_numpy(array)
            options = {"parameters": {"signature_name": SIGNATURES[datatype]}, "request_id": "seven"}
            options |= kind.get("options", {})
            answer = client.infer("echo", [given], outputs=[wanted], **options)
            received = answer.as_numpy("y")
            if text and datatype == "BYTES":
                received = np.array([item.encode() for item in received.flat], object).reshape(received.shape)
            response = answer.get_response()
            identity = response["id"] if isinstance(response, dict) else response.id
            assert identity == "seven"
            assert same(received, array), (datatype, kind, received, array)
    try:
        given = module.InferInput("x", [1], "FP32")
        given.set_data_from_numpy(np.zeros(1, np.float32))
        client.infer("echo", [given])
    except Exception as error:
        seen["error"] = [type(error).__name__, error.message()]
    return seen


def triton_http() -> dict:
    import tritonclient.http as module

    client = module.InferenceServerClient(REST)
    gzip = {"request_compression_algorithm": "gzip", "response_compression_algorithm": "gzip"}
    seen = triton(module, client, [{"binary": True}, {"binary": False}, {"binary": True, "options": gzip}])
    big = np.arange(300_000, dtype=np.int32).reshape(1000, 300)
    strings = np.array([f"item {n}".encode() for n in range(20_000)], object)
    for binary in (True, False):
        for array, datatype in ((big, "INT32"), (strings, "BYTES")):
            given = module.InferInput("x", array.shape, datatype)
            given.set_data_from_numpy(array, binary_data=binary)
            wanted = module.InferRequestedOutput("y", binary_data=binary)
            parameters = {"signature_name": SIGNATURES[datatype]}
            found = client.infer("echo", [given], outputs=[wanted], parameters=parameters).as_numpy("y")
            if datatype == "BYTES" and not binary:
                found = np.array([item.encode() for item in found], object)
            assert same(found, array), (datatype, binary)
    given = module.InferInput("x", [2], "INT32")
    given.set_data_from_numpy(np.array([1, 2], np.int32))
    seen["default"] = client.infer("echo", [given]).as_numpy("y").tolist()
    client.close()
    return seen


def triton_grpc() -> dict:
    import tritonclient.grpc as module

    client = module.InferenceServerClient(GRPC)
    seen = triton(module, client, [{}, {"options": {"compression_algorithm": "gzip"}}])
    answers: queue.Queue = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    for number in (1, 2, 3):
        given = module.InferInput("x", [1], "FP32" if number == 2 else "INT32")
        given.set_data_from_numpy(np.array([number], np.float32 if number == 2 else np.int32))
        client.async_stream_infer("echo", [given], request_id=str(number))
    streamed = [answers.get(timeout=30) for _ in range(3)]
    client.stop_stream()
    seen["streamed"] = [
        [result.get_response().id, result.as_numpy("y").tolist()] if error is None else error.message()
        for result, error in streamed
    ]
    client.close()
    return seen


async def kserve() -> dict:
    from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest
    from kserve.inference_client import RESTConfig

    seen = {}
    rest = InferenceRESTClient(RESTConfig(protocol="v2"))
    base = f"http://{REST}"
    seen["rest"] = [
        await rest.is_server_live(base),
        await rest.is_server_ready(base),
        await rest.is_model_ready(base, "echo"),
    ]
    grpc = InferenceGRPCClient(GRPC)
    seen["grpc"] = [await grpc.is_server_live(), await grpc.is_server_ready(), await grpc.is_model_ready("echo")]
    for binary in (True, False):
        for datatype in ("INT32", "FP32", "BYTES"):
            array = np.array([["a", "b"]], object) if datatype == "BYTES" else VALUES[datatype]
            array = (
                array if datatype != "FP32" else np.array([[1.5], [-2]], np.float32)
            )  # its JSON has only finite ones
            given = InferInput("x", list(array.shape), datatype)
            given.set_data_from_numpy(array, binary_data=binary)
            request = InferRequest("echo", [given], "1", parameters={"signature_name": SIGNATURES[datatype]})
            for answer in (await rest.infer(base, request, model_name="echo"), await grpc.infer(request)):
                assert _texts(answer.outputs[0].as_numpy()) == _texts(array), (datatype, binary)
    await rest.close()
    await grpc.close()
    return seen


def _texts(array: np.ndarray) -> list:
    return [item.decode() if isinstance(item, bytes) else str(item) for item in array.flat]


CLIENTS = {"http": triton_http, "grpc": triton_grpc, "kserve": lambda: asyncio.run(kserve())}

if __name__ == "__main__":
    print(json.dumps(CLIENTS[sys.argv[3]]()))
