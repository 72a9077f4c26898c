"""h2spec against the HTTP/2 layer.

Its requests are no gRPC calls, and would be refused before they are tested: each gets the head of one, of a method that
stays open as long as its stream.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from glowplug.serve.rpc.http2.headers import Fields
from glowplug.serve.rpc.methods import Head
from tests.judges.verdict import Verdict
from tests.serve.rpc_server import EchoServer

NAME = "h2spec"
# What it finds and we stand by, by the text of its case (docs/reference/serve.md gives the reasons).
KNOWN = (
    "Sends HEADERS frame that depends on itself",
    "Sends PRIORITY frame that depend on itself",
    "Sends a WINDOW_UPDATE frame on half-closed (remote) stream",
    "Sends a PRIORITY frame on half-closed (remote) stream",
    "Sends HEADERS frames that causes their advertised concurrent stream limit to be exceeded",
)
_METHOD = "/test/Chat"
_SECONDS = 600


def judge(program: str) -> Verdict:
    """Run all of its cases against the layer alone."""
    if not program:
        return Verdict(NAME, None, "the program is not named: H2SPEC=…")
    if not Path(program).is_file():
        return Verdict(NAME, None, f"{program} is not there")
    with EchoServer() as server, tempfile.TemporaryDirectory() as folder:
        _complete_heads(server)
        report = Path(folder) / "report.xml"
        words = [program, "--host", "127.0.0.1", "--port", str(server.port), "--timeout", "3"]
        words += ["--path", _METHOD, "--junit-report", str(report)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_SECONDS)
        if not report.exists():
            return Verdict(NAME, False, done.stderr.strip()[-300:] or done.stdout.strip()[-300:])
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    failed = [
        f"{case.get('package')} {case.get('classname')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    wrong = [name for name in failed if not any(text in name for text in KNOWN)]
    text = f"{len(cases) - len(failed)} of {len(cases)} cases"
    return Verdict(NAME, not wrong and bool(cases), text + (f"; failed: {'; '.join(wrong)}" if wrong else ""))


def _complete_heads(server: EchoServer) -> None:
    """Let every well-formed request be a gRPC call."""
    application = server.rpc._application
    read = application.read_head

    def complete(fields: Fields) -> Head:
        others = [(name, value) for name, value in fields if name not in (b":method", b":path", b"content-type")]
        call = [(b":method", b"POST"), (b":path", _METHOD.encode()), *others, (b"content-type", b"application/grpc")]
        return read(call)

    object.__setattr__(application, "read_head", complete)
