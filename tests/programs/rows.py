"""Rows of a results file that are made in several calls, and count together only if one state of the code made them.

They are kept in bench/.cache until every one that is wanted is there. A state is what decides about a row: Glowplug's
source, what runs inside each program, and the releases of Python, TensorFlow, Keras and numpy.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PLACES = (ROOT / "src" / "glowplug", Path(__file__).parent / "inside", Path(__file__).parent / "enabling.py")
PACKAGES = ("tensorflow", "tensorflow-cpu", "keras", "numpy")


def state_of_code(places: Iterable[Path] = PLACES) -> str:
    """Return a digest of the source in these folders and files, and of the releases that it runs with."""
    whole = hashlib.sha256()
    for place in places:
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            _add(whole, str(path.relative_to(place.parent)).encode(), path.read_bytes())
    for package in PACKAGES:
        _add(whole, package.encode(), _version(package).encode())
    _add(whole, platform.python_version().encode())
    return whole.hexdigest()


def kept_rows(name: str) -> Rows:
    """Return the rows of bench/results/NAME.json that this state of the code has so far."""
    return Rows(_machine().CACHE / "rows" / f"{name}.json", state_of_code())


def write_results(name: str, rows: Rows, document: dict[str, Any]) -> None:
    """Write bench/results/NAME.json: the machine, the state of the code, and the document."""
    machine = _machine()
    machine.write_result(name, {"machine": machine.describe(), "state": rows.state, **document}, partial=False)


def digest(text: str) -> str:
    """Return the digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


class Rows:
    """The rows of one state by their names. Each is of something, whose digest has to be the same as well."""

    def __init__(self, path: Path, state: str) -> None:
        self._path = path
        self.state = state
        self._rows: dict[str, Any] = {}
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["state"] == state:
                self._rows = kept["rows"]

    def are_of_now(self) -> bool:
        """Whether the source is still the one of this state: what ran while it was edited is no row of either."""
        return state_of_code() == self.state

    def get(self, name: str, of: str) -> dict[str, Any] | None:
        """Return the row of this name, if it was made in this state and of the same thing."""
        row = self._rows.get(name)
        return row["row"] if row is not None and row["of"] == of else None

    def put(self, name: str, of: str, row: dict[str, Any]) -> None:
        """Keep a row: at once, since the call may be stopped before the next one."""
        self._rows[name] = {"of": of, "row": row}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        written = self._path.with_suffix(".new")
        written.write_text(json.dumps({"state": self.state, "rows": self._rows}), encoding="utf-8")
        written.replace(self._path)

    def all_of(self, wanted: Mapping[str, str]) -> dict[str, dict[str, Any]] | None:
        """Return the rows of all these names, in their order, or None if one is not there."""
        found = {name: self.get(name, of) for name, of in wanted.items()}
        rows = {name: row for name, row in found.items() if row is not None}
        return rows if len(rows) == len(found) else None


def _machine() -> Any:
    sys.path.insert(0, str(ROOT / "bench"))
    import machine

    return machine


def _add(whole: Any, *parts: bytes) -> None:
    for part in parts:
        whole.update(len(part).to_bytes(8, "little") + part)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
