"""Writes docs/reference/errors.md from the error classes: make_error_reference.py [--check]"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from glowplug.core.errors import GlowplugError  # noqa: E402

TARGET = ROOT / "docs" / "reference" / "errors.md"
HEAD = """\
# Errors

<!-- written by docs/make_error_reference.py: edit src/glowplug/core/errors.py instead -->

Everything that Glowplug raises on purpose is a `glowplug.GlowplugError`. Its `what`, `seen` and `remedy` are the three
parts of the message: what failed, the value seen, what to do next. On the command line the message is one line on
stderr, and the exit code is the class's.

| class | exit code | when |
| --- | --- | --- |
"""


def rows(one: type[GlowplugError], depth: int = 0) -> Iterator[str]:
    meaning = " ".join((one.__doc__ or "").split())
    yield f"| {'&nbsp;' * 4 * depth}`{one.__name__}` | {one.exit_code} | {meaning} |"
    for child in one.__subclasses__():
        yield from rows(child, depth + 1)


def main() -> int:
    text = HEAD + "\n".join(rows(GlowplugError)) + "\n"
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
            sys.exit(f"{TARGET.relative_to(ROOT)} is out of date: run `make docs`")
        return 0
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
