"""The gRPC of Node.js as a client: small and large messages, many at once, streams, errors, deadlines, heads."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from tests.judges.verdict import Verdict
from tests.serve.rpc_server import EchoServer

NAME = "grpc-js"
ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venvs" / "grpc-js"
SCRIPT = Path(__file__).with_name("grpc_js")
_SECONDS = 300


def judge() -> Verdict:
    """Install the package in a folder of its own, and let it call every method of the layer."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return Verdict(NAME, None, "node and npm are not installed")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "client.js"):
        shutil.copyfile(SCRIPT / name, FOLDER / name)
    if not (FOLDER / "node_modules" / "@grpc" / "grpc-js").is_dir():
        words = [npm, "install", "--no-audit", "--no-fund", "--silent"]
        done = subprocess.run(words, cwd=FOLDER, capture_output=True, text=True, check=False, timeout=_SECONDS)
        if done.returncode:
            return Verdict(NAME, None, f"npm could not install it: {done.stderr.strip()[-200:]}")
    with EchoServer() as server:
        words = [node, "client.js", server.address]
        done = subprocess.run(words, cwd=FOLDER, capture_output=True, text=True, check=False, timeout=_SECONDS)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return Verdict(NAME, False, f"exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    failed = [f"{case}: {problem}" for case, problem in found.items() if problem]
    text = f"{len(found) - len(failed)} of {len(found)} cases"
    return Verdict(NAME, not failed and done.returncode == 0, text + (f"; {'; '.join(failed)}" if failed else ""))
