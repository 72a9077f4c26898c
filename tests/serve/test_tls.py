"""TLS and mutual TLS, and certificates that change while the server runs."""

from __future__ import annotations

import datetime
import http.client
import json
import socket
import ssl

import grpc
import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from glowplug.core.errors import UsageError
from glowplug.serve.tls import TlsFiles
from glowplug.serve.wire.messages import serving
from glowplug.serve.wire.tensor_proto import encode
from tests.serve.server import Server

DAY = datetime.timedelta(days=1)


class Authority:
    """Signs certificates."""

    def __init__(self, name: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.pem = self._sign(self.name, self.key, authority=True)

    def _sign(self, name, key, *, authority):
        now = datetime.datetime.now(datetime.UTC)
        made = x509.CertificateBuilder(
            self.name, name, key.public_key(), x509.random_serial_number(), now - DAY, now + DAY
        )
        made = made.add_extension(x509.BasicConstraints(authority, None), critical=True)
        if not authority:
            made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        return made.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str) -> tuple[bytes, bytes]:
        """Return a certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key, authority=False)
        private = serialization.PrivateFormat.PKCS8
        return certificate, key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption())


@pytest.fixture(scope="module")
def authority():
    return Authority("authority of the tests")


def put(folder, name, content):
    """Replace a file in one step, as those who renew certificates do."""
    new = folder / f".{name}"
    new.write_bytes(content)
    return new.rename(folder / name)


def rest(server, authority, client=None, path="/v1/models/half:predict"):
    context = ssl.create_default_context(cadata=authority.pem.decode())
    if client:
        context.load_cert_chain(*client)
    connection = http.client.HTTPSConnection("localhost", server.rest_port, timeout=30, context=context)
    try:
        connection.request("POST", path, json.dumps({"instances": [1.0]}), {"Connection": "close"})
        serial = x509.load_der_x509_certificate(connection.sock.getpeercert(binary_form=True)).serial_number
        response = connection.getresponse()
        return serial, response.status, json.loads(response.read())
    finally:
        connection.close()


def predict(server, authority, client=(None, None)):
    credentials = grpc.ssl_channel_credentials(authority.pem, client[1], client[0])
    request = serving("PredictRequest")()
    request.model_spec.name = "half"
    request.inputs["x"].CopyFrom(encode(np.ones((1, 1), np.float32), "float32"))
    with grpc.secure_channel(f"localhost:{server.grpc_port}", credentials) as channel:
        stub = channel.unary_unary(
            "/tensorflow.serving.PredictionService/Predict",
            lambda one: one.SerializeToString(),
            serving("PredictResponse").FromString,
        )
        return list(stub(request, timeout=20).outputs["y"].float_val)


def serial_of(certificate):
    return x509.load_pem_x509_certificate(certificate).serial_number


@pytest.mark.tensorflow
def test_tls_and_certificates_that_change(half_plus_two, authority, tmp_path):
    first, key = authority.issue("first")
    files = put(tmp_path, "cert.pem", first), put(tmp_path, "key.pem", key)
    with Server(f"half={half_plus_two}", "--tls-cert", files[0], "--tls-key", files[1]) as server:
        assert rest(server, authority) == (serial_of(first), 200, {"predictions": [2.5]})
        assert predict(server, authority) == [2.5]
        with pytest.raises((http.client.HTTPException, OSError)):
            server.get("/healthz")
        kept = http.client.HTTPSConnection(
            "localhost", server.rest_port, context=ssl.create_default_context(cadata=authority.pem.decode())
        )
        kept.request("GET", "/healthz")
        assert kept.getresponse().read() == b"ok\n"
        second, key = authority.issue("second")
        put(tmp_path, "cert.pem", second)  # and not yet its key
        server.wait_event("certificates_kept", protocol="http/1.1")
        assert rest(server, authority)[0] == serial_of(first)
        put(tmp_path, "key.pem", key)
        for protocol in ("http/1.1", "h2"):
            server.wait_event("certificates_read", protocol=protocol)
        assert rest(server, authority) == (serial_of(second), 200, {"predictions": [2.5]})
        assert predict(server, authority) == [2.5]
        kept.request("GET", "/healthz")
        assert kept.getresponse().read() == b"ok\n"
        kept.close()
        with ssl.create_default_context(cadata=authority.pem.decode()).wrap_socket(
            socket.create_connection(("localhost", server.rest_port)), server_hostname="localhost"
        ) as client:
            client.sendall(b"nonsense\r\n\r\n")
            said = b""
            while part := client.recv(4096):
                said += part
            assert said.startswith(b"HTTP/1.1 400 ")


@pytest.mark.tensorflow
def test_clients_need_a_certificate(half_plus_two, authority, tmp_path):
    certificate, key = authority.issue("server")
    people = Authority("authority of clients")
    client = people.issue("client")
    files = [put(tmp_path, name, content) for name, content in (("c", certificate), ("k", key), ("ca", people.pem))]
    own = [put(tmp_path, name, content) for name, content in zip(("client", "client.key"), client, strict=True)]
    flags = ("--tls-cert", files[0], "--tls-key", files[1], "--tls-client-ca", files[2])
    with Server(f"half={half_plus_two}", *flags) as server:
        assert rest(server, authority, own)[1:] == (200, {"predictions": [2.5]})
        assert predict(server, authority, client) == [2.5]
        with pytest.raises((OSError, http.client.HTTPException)):
            rest(server, authority)
        for other in ((None, None), Authority("another").issue("client")):
            with pytest.raises(grpc.RpcError) as caught:
                predict(server, authority, other)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.tensorflow
def test_the_file_of_tensorflow_serving(half_plus_two, authority, tmp_path):
    certificate, key = authority.issue("server")
    client = authority.issue("client")
    fields = {"server_key": key, "server_cert": certificate, "custom_ca": authority.pem}
    lines = [f"{name}: {json.dumps(value.decode())}" for name, value in fields.items()]
    config = put(tmp_path, "ssl.config", "\n".join([*lines, "client_verify: true"]).encode())
    with Server(f"half={half_plus_two}", f"--ssl_config_file={config}") as server:
        assert predict(server, authority, client) == [2.5]
        with pytest.raises(grpc.RpcError):
            predict(server, authority)
        assert server.get("/v2/health/live") == (200, {"live": True})  # as there, it is about gRPC


def test_what_cannot_be_used_is_said(authority, tmp_path):
    certificate, key = (put(tmp_path, name, content) for name, content in zip("ck", authority.issue("x"), strict=True))
    other = put(tmp_path, "o", authority.issue("y")[1])
    TlsFiles(None, certificate, key).context("h2")
    for files in ((certificate, other), (key, certificate), (certificate, tmp_path / "none"), (certificate, key, key)):
        with pytest.raises(UsageError, match="key"):
            TlsFiles(None, *files).context("h2")
    locked = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(UsageError, match="cannot be used"):
        TlsFiles(None, certificate, put(tmp_path, "l", locked)).context("h2")
    with pytest.raises(UsageError, match="client_verify needs a custom_ca"):
        TlsFiles(put(tmp_path, "config", b"client_verify: true")).context("h2")
