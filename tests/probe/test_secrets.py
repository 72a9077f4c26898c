"""No secret of a target is in its profile, nor in anything that is made from one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from glowplug.probe.run import profile_target

SECRET = "hunter2hunter2"
PROGRAM = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "import json", "--token", sys.argv[2]])
"""


def test_a_profile_has_no_secret_and_is_its_owners_alone(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [str(tmp_path / "program.py"), "--password", SECRET, f"--url=https://me:{SECRET}@host/"]
    variables = {**os.environ, "TF_VAR_db_password": SECRET, "KERAS_BACKEND": "tensorflow"}
    outputs = ["-o", "p.json", "--html", "p.html", "--trace", "p.trace"]
    command = [sys.executable, "-m", "glowplug", "profile", *outputs, *words]
    done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    for name in ("p.json", "p.html", "p.trace"):
        path = tmp_path / name
        assert SECRET not in path.read_text()
        assert path.stat().st_mode & 0o777 == 0o600
    assert '"KERAS_BACKEND":"tensorflow"' in (tmp_path / "p.json").read_text()


def test_the_profile_of_the_python_interface_has_none_either(tmp_path: Path) -> None:
    profile = profile_target(["-c", "pass", "--api-key", SECRET], environment={**os.environ, "TF_TOKEN_X": SECRET})
    assert SECRET not in repr(profile)
    assert profile.command == ("-c", "pass", "--api-key", "<masked>")
