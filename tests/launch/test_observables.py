"""What a program can observe is the same under Python, under `glowplug run` and in a standby's child, row by row.

Rows that differ are listed in docs/explanation/how-run-works.md, and only those that do.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]
TARGETS = Path(__file__).parent / "targets"
PAGE = ROOT / "docs" / "explanation" / "how-run-works.md"
WAYS = {
    "python": [],
    "run": ["-m", "glowplug", "run", "--no-standby", "--no-trace-cache"],
    "standby": ["-m", "glowplug", "run", "--standby", "--no-trace-cache"],
}
FORMS = {
    "script": ["observe.py", "a", "b c"],
    "module": ["-m", "package.observe", "--", "-m"],
    "folder": ["folder", "x"],
    "archive": ["program.zip"],
    "tensorflow": ["observe_tensorflow.py"],
}


def listed(way: str) -> set[str]:
    """Return the rows of the page's table for a way."""
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", PAGE.read_text(), re.M)
    return {name for name, ways in rows if way in ways.split(", ")}


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """What each form of a program has written, by way; each row by its name."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").touch()
    (folder / "folder").mkdir()
    for path in TARGETS.glob("observe*.py"):
        (folder / path.name).write_text(path.read_text())
    for path in (folder / "package" / "observe.py", folder / "folder" / "__main__.py"):
        path.write_text((TARGETS / "observe.py").read_text())
    subprocess.run(
        [sys.executable, "-m", "zipfile", "-c", "../program.zip", "__main__.py"], cwd=folder / "folder", check=True
    )
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("GLOWPLUG_", "TF_", "TF2_", "HDF5_"))
    }
    found: dict[str, dict[str, object]] = {way: {} for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="standby-") as directory:
        environment = {
            **kept,
            "PYTHONPATH": str(ROOT / "src"),
            "GLOWPLUG_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
            "GLOWPLUG_STANDBY_DIR": directory,
            "PYTHONHASHSEED": "0",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PARENT": str(os.getpid()),
            "OBSERVE": str(folder / "observed"),
        }
        for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
            environment.pop(name, None)

        def run(way: str, words: list[str]) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, *WAYS[way], *words],
                env=environment,
                cwd=folder,
                input="typed\n",
                capture_output=True,
                text=True,
                timeout=300,
            )

        for way in ("run", "standby"):
            run(way, ["-c", "import tensorflow, keras"])  # which learns, and which starts one
        try:
            for form, words in FORMS.items():
                for way in WAYS:
                    done = run(way, words)
                    assert done.returncode == 0, (form, way, done.stderr)
                    rows = json.loads((folder / "observed").read_text())
                    found[way].update({f"{form}: {name}": value for name, value in rows.items()})
                    (folder / "observed").unlink()
        finally:
            told = run("python", ["-m", "glowplug", "standby", "status", "--json"]).stdout
            for one in json.loads(told)["standbys"]:
                os.kill(one["pid"], signal.SIGKILL)
    return found


@pytest.mark.parametrize("way", ["run", "standby"])
def test_every_row_is_the_same_or_listed(documents, way):
    stock, other = documents["python"], documents[way]
    assert len(stock) > 600
    assert len({name.partition(": ")[2] for name in stock}) > 190
    assert stock.keys() == other.keys()
    different = {name: (stock[name], other[name]) for name in stock if stock[name] != other[name]}
    for name, (expected, seen) in different.items():
        print(name, str(expected)[:300], str(seen)[:300], sep="\n    ")
    assert {name.partition(": ")[2] for name in different} == listed(way)
