"""A closed REST loop by `h2load` (Debian's nghttp2-client): a load generator that leaves the machine to the servers."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

_WARM_UP_SECONDS = 1


def closed_loop(url: str, body: Path, connections: int, seconds: int) -> dict[str, Any]:
    """Ask over so many connections, each as fast as it is answered; return what was seen after a second of it."""
    program = shutil.which("h2load")
    if program is None:
        sys.exit("h2load is not there: apt-get install nghttp2-client")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [program, "--h1", f"-c{connections}", "-t1", f"-D{seconds}", f"--warm-up-time={_WARM_UP_SECONDS}"]
        command += ["-d", str(body), "-H", "content-type: application/json", f"--log-file={log}", url]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"h2load failed: {done.stderr}")
        rows = [line.split("\t") for line in log.read_text(encoding="ascii").splitlines()]
    microseconds = sorted(int(row[2]) for row in rows)
    if not microseconds:
        sys.exit(f"nothing was answered: {done.stdout}")
    return {
        "requests": len(rows),
        "per_second": round(len(rows) / seconds, 1),
        "outcomes": dict(Counter(row[1] for row in rows)),
        "median_ms": round(median(microseconds) / 1000, 3),
        "p99_ms": microseconds[min(len(rows) - 1, int(len(rows) * 0.99))] / 1000,
        "max_ms": microseconds[-1] / 1000,
    }
