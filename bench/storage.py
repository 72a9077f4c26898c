"""What the benchmarks of the store share: a real SeaweedFS, models on it, and what it has sent."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SCRIPTS = Path(__file__).parent / "scripts"
sys.path.insert(0, str(ROOT))

from tests.components import relay, seaweedfs  # noqa: E402 - the tests' own server


@dataclass(frozen=True, slots=True)
class Storage:
    """A server, a relay in front of it that counts, and a folder for whatever a benchmark writes."""

    server: seaweedfs.SeaweedFS
    relay: relay.Relay
    folder: Path

    def environment(self, cache: Path, *, counted: bool = False, **more: str) -> dict[str, str]:
        """Return the variables of a client: straight to the server, or through the relay."""
        port = self.relay.port if counted else None
        own = {"GLOWPLUG_NODE_CACHE_DIR": str(cache), "TF_CPP_MIN_LOG_LEVEL": "3"}
        return {**os.environ, **self.server.environment(port), **own, **more}

    def cache(self) -> Path:
        """Return a place for a node cache that nobody has used."""
        return Path(tempfile.mkdtemp(prefix="cache-", dir=self.folder)) / "cache"

    def count(self) -> int:
        """Return the bytes that clients got through the relay since the last call."""
        received, self.relay.counts = self.relay.counts.received_bytes, relay.Counts()
        return received


@contextlib.contextmanager
def storage() -> Iterator[Storage]:
    """A running server for the length of a block. Its data goes to $TMPDIR."""
    with tempfile.TemporaryDirectory(prefix="glowplug-bench-") as folder:
        place = Path(folder)
        with seaweedfs.running(place) as server, relay.relaying(server.s3_port, "0.0.0.0") as counting:
            yield Storage(server, counting, place)


def glowplug(environment: dict[str, str], *words: str | Path) -> dict[str, Any]:
    """Run a verb and return its JSON."""
    command = [sys.executable, "-m", "glowplug", *map(str, words), "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def upload(one: Storage, directory: Path, path: str) -> None:
    """Put a directory on the storage as it is, file by file."""
    import s3fs

    client = s3fs.S3FileSystem(
        key=seaweedfs.ACCESS_KEY, secret=seaweedfs.SECRET_KEY, endpoint_url=f"http://127.0.0.1:{one.server.s3_port}"
    )
    client.put(f"{directory}/", f"{seaweedfs.BUCKET}/{path}/", recursive=True)


def start(
    commands: Sequence[Sequence[str | Path]], environment: dict[str, str], prefix: Sequence[str] = ()
) -> list[subprocess.Popen[str]]:
    """Start Python scripts, all at once; `prefix` are words before the interpreter."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return [
        subprocess.Popen([*prefix, sys.executable, *map(str, command)], env=environment, text=True, **pipes)
        for command in commands
    ]


def finish(children: Sequence[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    """Wait for scripts, and return the JSON of the last line of each."""
    documents = []
    for child in children:
        out, err = child.communicate()
        if child.returncode:
            sys.exit(err)
        documents.append(json.loads(out.splitlines()[-1]))
    return documents


def last_ready_s(commands: Sequence[Sequence[str | Path]], environment: dict[str, str]) -> dict[str, float]:
    """Start all at once; return how long after that the last had its model loaded, and its first answer."""
    began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    documents = finish(start(commands, environment))
    return {
        until: round((max(one[f"{until}_at_ns"] for one in documents) - began) / 1e9, 3)
        for until in ("loaded", "first")
    }
