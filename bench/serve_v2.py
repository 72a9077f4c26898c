"""Open Inference beside `:predict`, and TLS beside none: serve_v2.py [--rounds N] [--requests N]

One client that waits for each answer, the dense model, one row; ways take turns in blocks of requests. The bars:
`infer` no slower than `:predict` over each transport, TLS at most 1.5 times as long.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import ssl
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bundles
import grpc
import machine
import models
import numpy as np
import serving

from glowplug.bundle.reader import read_manifest
from glowplug.serve.wire.messages import message
from glowplug.serve.wire.messages import serving as serving_message
from glowplug.serve.wire.tensor_proto import encode

MODEL = "dense"
METHODS = {
    "predict": "/tensorflow.serving.PredictionService/Predict",
    "infer": "/inference.GRPCInferenceService/ModelInfer",
}


COMPARED = (("rest infer", "rest predict"), ("rest infer, bytes", "rest predict"), ("grpc infer", "grpc predict"))


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Return the middle of the ratios of blocks that took turns."""
    return round(statistics.median(one / other for one, other in zip(ours, theirs, strict=True)), 2)


def requests() -> dict[str, dict[str, Any]]:
    """Return the same row for each way: body and headers over REST, a message over gRPC."""
    shape, dtype = models.INPUTS[MODEL]
    row = np.random.default_rng(1).random(shape).astype(dtype)
    key = next(iter(read_manifest(bundles.bundle(MODEL)).signatures["serving_default"].inputs))
    tensor = {"name": key, "datatype": "FP32", "shape": list(row.shape)}
    head = json.dumps({"inputs": [{**tensor, "parameters": {"binary_data_size": row.nbytes}}]}).encode()
    predict = serving_message("PredictRequest")()
    predict.model_spec.name = "m"
    predict.inputs[key].CopyFrom(encode(row, dtype))
    infer = message("inference.ModelInferRequest")(model_name="m", raw_input_contents=[row.tobytes()])
    infer.inputs.add(**tensor)
    length = {"Inference-Header-Content-Length": str(len(head))}
    flat = json.dumps({"inputs": [{**tensor, "data": row.ravel().tolist()}]}).encode()
    return {
        "rest predict": {"path": "/v1/models/m:predict", "body": json.dumps({"instances": row.tolist()}).encode()},
        "rest infer": {"path": "/v2/models/m/infer", "body": flat},
        "rest infer, bytes": {"path": "/v2/models/m/infer", "body": head + row.tobytes(), "headers": length},
        "grpc predict": {"method": METHODS["predict"], "message": predict.SerializeToString()},
        "grpc infer": {"method": METHODS["infer"], "message": infer.SerializeToString()},
    }


def certificate(folder: Path) -> tuple[Path, Path]:
    """Return a self-signed certificate and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "1"]
    subprocess.run([*command, *names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


def callers(server: serving.Server, cert: Path | None, stack: contextlib.ExitStack) -> dict[str, Callable[[], None]]:
    """Return a call for each way, over connections that stay open."""
    rest_port, grpc_port = (address.rpartition(":")[2] for address in (server.rest, server.grpc))
    if cert is None:
        connection = http.client.HTTPConnection("localhost", int(rest_port))
        channel = grpc.insecure_channel(f"localhost:{grpc_port}")
    else:
        connection = http.client.HTTPSConnection(
            "localhost", int(rest_port), context=ssl.create_default_context(cafile=cert)
        )
        channel = grpc.secure_channel(f"localhost:{grpc_port}", grpc.ssl_channel_credentials(cert.read_bytes()))
    stack.callback(connection.close)
    stack.callback(channel.close)

    def rest(given: dict[str, Any]) -> None:
        connection.request("POST", given["path"], given["body"], given.get("headers", {}))
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, body

    made: dict[str, Callable[[], None]] = {}
    for way, given in requests().items():
        if "path" in given:
            made[way] = lambda given=given: rest(given)
        else:
            stub = channel.unary_unary(given["method"])
            made[way] = lambda stub=stub, given=given: stub(given["message"], timeout=30)
    return made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--requests", type=int, default=500)
    args = parser.parse_args()
    machine.prepare()
    bundle = bundles.bundle(MODEL)
    with contextlib.ExitStack() as stack:
        cert, key = certificate(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        plain = stack.enter_context(serving.glowplug(f"m={bundle}"))
        secure = stack.enter_context(serving.glowplug(f"m={bundle}", "--tls-cert", cert, "--tls-key", key))
        ways = dict(callers(plain, None, stack))
        ways |= {f"{way}, tls": call for way, call in callers(secure, cert, stack).items()}
        runs: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(args.rounds):
            for way, call in ways.items():
                call()
                began = time.perf_counter()
                for _ in range(args.requests):
                    call()
                runs[way].append((time.perf_counter() - began) / args.requests)
    for way, found in runs.items():
        print(f"{way}: {statistics.median(found) * 1e6:.0f} us a request ({min(found) * 1e6:.0f} at best)")
    ratios = {f"{way} / {other}": ratio(runs[way], runs[other]) for way, other in COMPARED}
    ratios |= {f"{way} / without": ratio(runs[way], runs[way.removesuffix(", tls")]) for way in runs if "tls" in way}
    print(ratios)
    document = {"machine": machine.describe(), "requests": args.requests, "ratios": ratios, "seconds": runs}
    machine.write_result("serve_v2", document, partial=args.rounds < 10)


if __name__ == "__main__":
    main()
