"""How many bytes distributions take, with all that they ask for: installed_size.py NAME ... (one JSON line).

Run as a script by the interpreter of that environment, standard library alone. Of several names for one thing, as
`tensorflow|tensorflow-cpu`, the first that is installed counts. A distribution that is installed for editing has its
files elsewhere: its package's folder is measured.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import sys
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"\bextra\s*==")


def find(name: str) -> importlib.metadata.Distribution | None:
    """Return the distribution of that name, if it is installed."""
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def needed(roots: list[str]) -> dict[str, importlib.metadata.Distribution]:
    """Return the distributions that are installed because of `roots`, by name."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [next((one for one in root.split("|") if find(one) is not None), root) for root in roots]
    while waiting:
        name = waiting.pop().lower().replace("_", "-").replace(".", "-")
        if name in found or (distribution := find(name)) is None:
            continue
        found[name] = distribution
        for text in distribution.requires or ():
            match = _NAME.match(text)
            if match is not None and not _EXTRA.search(text):
                waiting.append(match.group())
    return found


def size(name: str, distribution: importlib.metadata.Distribution) -> int:
    """Return the bytes of a distribution's files; a file with two names counts once."""
    files = {os.path.realpath(str(distribution.locate_file(file))) for file in distribution.files or ()}
    spec = importlib.util.find_spec(name.replace("-", "_"))
    if spec is not None and spec.origin is not None and os.path.realpath(spec.origin) not in files:
        files |= {str(path) for path in Path(spec.origin).parent.rglob("*")}
    return sum(Path(file).stat().st_size for file in files if Path(file).is_file())


def main() -> None:
    """Print the total and the versions."""
    found = needed(sys.argv[1:])
    total = sum(size(name, distribution) for name, distribution in found.items())
    roots = {name for root in sys.argv[1:] for name in root.split("|")}
    versions = {name: one.version for name, one in found.items() if name in roots}
    print(json.dumps({"bytes": total, "versions": versions}))


if __name__ == "__main__":
    main()
