"""Rows of a results file that are made in several calls, and count together only if one state of the code made them.

They are kept in bench/.cache until every one that is wanted is there. A state is what decides about a row: Glowplug's
source, what runs inside each program, and the releases of Python, TensorFlow, Keras and numpy.
"""

from __future__ import annotations

import fcntl
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

    def are_of_now(self) -> bool:
        """Whether the source is still the one of this state: what ran while it was edited is no row of either."""
        return state_of_code() == self.state

    def get(self, name: str, of: str) -> dict[str, Any] | None:
        """Return the row of this name, if it was made in this state and of the same thing."""
        row = self._kept().get(name)
        return row["row"] if row is not None and row["of"] == of else None

    def put(self, name: str, of: str, row: dict[str, Any]) -> None:
        """Keep a row at once: the call may be stopped before the next one, and another may run beside it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            rows = {**self._kept(), name: {"of": of, "row": row}}
            written = self._path.with_suffix(".new")
            written.write_text(json.dumps({"state": self.state, "rows": rows}), encoding="utf-8")
            written.replace(self._path)

    def of(self, wanted: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        """Return those of the rows with these names that are there, in the order of the names."""
        found = {name: self.get(name, of) for name, of in wanted.items()}
        return {name: row for name, row in found.items() if row is not None}

    def _kept(self) -> dict[str, Any]:
        if not self._path.exists():
            return {}
        kept = json.loads(self._path.read_text(encoding="utf-8"))
        return dict(kept["rows"]) if kept["state"] == self.state else {}


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
