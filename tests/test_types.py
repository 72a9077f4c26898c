"""What a type checker sees of the package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = """\
import glowplug

glowplug.mark("ready")
version: str = glowplug.__version__
glowplug.nope
profile: glowplug.Model = glowplug.profile(["train.py"])
model = glowplug.load("model.glow")
rows: int = model.array([1.0]).shape[0] + model.signature("other").array([1.0]).shape[0]
names: list[str] = list(model.arrays([1.0]))
model([1.0]).shape
"""


@pytest.mark.slow
def test_a_name_that_is_not_there_is_an_error(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--follow-imports=silent"]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    done = subprocess.run(
        [*command, tmp_path / "program.py"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    found = re.findall(r"program\.py:(\d+): error: (.+?)  \[", done.stdout)
    # The last line must be narrowed, since a call may have one output or several; those before it need not be.
    assert [int(line) for line, _ in found] == [5, 6, 10], done.stdout
    assert 'no attribute "nope"' in found[0][1]
