"""Runs the tests side by side, as `make test` does, and what failed among them once more on its own.

A machine that is busy enough fails a right test now and then: it waits for another process, and has a limit. A test
that passes on its own right afterwards was one of those, and is named; one that fails again, or is skipped then, has
failed. Where many fail, the machine is not the reason, and nothing is run again.

    python -m tests.second_look -m 'not slow and not storage'
    python -m tests.second_look --in-turn tests/cluster         # one test after the other
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

AGAIN_AT_MOST = 5
_FAILED = 1  # pytest's exit code for "some tests failed", and for nothing else
_SIDE_BY_SIDE = ("-n", "auto", "--dist", "loadgroup")


def main(arguments: Sequence[str], *, folder: Path | None = None) -> int:
    """Run pytest in a folder with these arguments; return its exit code, or that of the second look."""
    in_turn = list(arguments[:1]) == ["--in-turn"]
    code = _pytest(folder, *(arguments[1:] if in_turn else [*_SIDE_BY_SIDE, *arguments]))
    if code != _FAILED:
        return code
    failed = _failed(folder)
    if not 0 < len(failed) <= AGAIN_AT_MOST:
        return code
    print(f"failed beside others, and now on their own: {' '.join(failed)}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        code = _pytest(folder, *failed, f"--junitxml={report}")
        if code == 0 and list(ElementTree.parse(report).iter("skipped")):
            print("skipped on their own: that is no second chance that was taken", flush=True)
            return _FAILED
    return code


def _pytest(folder: Path | None, *arguments: str) -> int:
    return subprocess.call([sys.executable, "-m", "pytest", *arguments], cwd=folder)


def _failed(folder: Path | None) -> list[str]:
    """Return what pytest noted down of its last run."""
    return list(json.loads(((folder or Path()) / ".pytest_cache" / "v" / "cache" / "lastfailed").read_text()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
