"""`glowplug complete`: what a shell offers."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from glowplug.cli.main import VERBS


def offered(script: str, *words: str) -> list[str]:
    """Return what bash offers for the last of these words."""
    line = " ".join(f"'{word}'" for word in ("glowplug", *words))
    asked = f'{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _glowplug; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "--norc", "-c", asked], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.fixture
def script(call) -> str:
    code, out, err = call("complete", "bash")
    assert (code, err) == (0, "")
    return out


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash(script, tmp_path, monkeypatch):
    assert offered(script, "pro") == ["profile"]
    assert set(offered(script, "")) == set(VERBS)
    assert offered(script, "profile", "--html") == ["--html"]
    assert "--json-file" in offered(script, "run", "--")
    assert "--json" not in offered(script, "run", "--")
    assert offered(script, "explain", "two_") == ["two_traces_on_first_step"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    assert offered(script, "run", "tra") == ["train.py"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(shell, call):
    code, out, _ = call("complete", shell)
    assert code == 0
    for verb in VERBS:
        assert verb in out
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=out, text=True).returncode == 0


def test_as_json(call):
    code, out, _ = call("complete", "bash", "--json")
    assert code == 0
    assert json.loads(out)["script"].startswith("_glowplug() {")
