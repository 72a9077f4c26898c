"""`glowplug doctor`: each finding, on machines that have it and on those that do not."""

from __future__ import annotations

import importlib.metadata
import json
import sys
import tomllib
from pathlib import Path

import pytest

from glowplug.cli import checks, extras


def statuses(found):
    return {check.subject: check.status for check in found}


@pytest.mark.core
def test_this_machine_is_healthy(call):
    code, out, err = call("doctor")
    assert (code, err) == (0, "")
    assert "ok       C library       TensorFlow 2." in out
    assert out.splitlines()[-1].startswith("0 broken")


def test_doctor_as_json(call):
    code, out, _ = call("doctor", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["healthy"] is True
    subjects = {check["subject"] for check in document["checks"]}
    assert {"Python", "TensorFlow", "C library", "C functions", "processor", "GPUs", "bytecode"} <= subjects
    assert {"page cache", "state directory", "optional", "extra"} <= subjects


def test_without_tensorflow_it_is_broken_and_says_what_to_install(environment, tmp_path):
    """In an interpreter that sees no installed packages at all."""
    import subprocess

    source = Path(__file__).parents[2] / "src"
    code = (
        f"import sys; sys.path.insert(0, {str(source)!r}); import glowplug.cli.main as m; sys.exit(m.main(['doctor']))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], env=environment, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    assert "broken   C library       TensorFlow is not installed" in done.stdout
    assert "glowplug[cpu]" in done.stdout


def test_two_flavours_overwrite_each_other(monkeypatch):
    versions = {"tensorflow": "2.20.0", "tensorflow-cpu": "2.21.0"}

    def version(name):
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    (check,) = checks._tensorflow()
    assert check.status == "warning"
    assert "overwrite each other" in check.text
    assert check.remedy == "pip uninstall -y tensorflow tensorflow-cpu && pip install tensorflow-cpu==2.21.0"


@pytest.mark.parametrize(
    ("version", "status"),
    [("2.15.1", "warning"), ("2.16.0", "ok"), ("2.22.0rc0", "ok"), ("2.23.0", "warning"), ("3.0.0", "warning")],
)
def test_an_unsupported_tensorflow_is_flagged(monkeypatch, version, status):
    monkeypatch.setattr(checks, "installed_version", lambda name: version if name == "tensorflow" else None)
    (check,) = checks._tensorflow()
    assert check.status == status
    assert ("2.16 to 2.22" in check.text) == (status == "warning")


def test_every_extra_is_listed():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    listed = {extra.name: extra for extra in extras.all_extras()}
    assert set(listed) == set(project["optional-dependencies"]) - set(extras._LEFT_OUT)
    assert set(listed) == set(extras.PURPOSES)
    assert {"hpack", "httptools", "orjson", "uvloop"} <= set(listed["serve"].packages)
    assert {"fsspec", "obstore", "hdfs-native", "cryptography"} <= set(listed["store"].packages)


def test_a_missing_extra_gets_a_command_that_zsh_takes(monkeypatch):
    monkeypatch.setattr(extras, "installed_version", lambda name: None if name == "hpack" else "1")
    found = {check.text.partition(":")[0]: check for check in checks._extras()}
    assert found["serve"].status == "note"
    assert "not installed: hpack" in found["serve"].text
    assert found["serve"].remedy == "pip install 'glowplug[serve]'"
    assert found["report"].status == "ok"


def test_missing_bytecode_is_counted(tmp_path):
    (tmp_path / "package" / "inner").mkdir(parents=True)
    for name in ("__init__", "inner/one", "inner/two"):
        (tmp_path / "package" / f"{name}.py").write_text("x = 1\n")
    assert checks._count_bytecode(tmp_path / "package") == (0, 3)
    import py_compile

    py_compile.compile(str(tmp_path / "package" / "__init__.py"))
    assert checks._count_bytecode(tmp_path / "package") == (1, 2)


def test_missing_bytecode_gets_the_command_that_makes_it(monkeypatch):
    monkeypatch.setattr(checks, "_count_bytecode", lambda directory: (10, 90))
    found = list(checks._bytecode())
    assert {check.status for check in found} == {"warning"}
    assert all(f"{sys.executable} -m compileall -q " in check.remedy for check in found)


def test_a_state_directory_that_cannot_be_written(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    (check,) = checks._state_directory()
    assert check.status == "broken"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "new"))
    (check,) = checks._state_directory()
    assert check.status == "ok"
    assert not (tmp_path / "new").exists()


def test_little_memory(monkeypatch):
    monkeypatch.setattr(checks, "_memory_limit", lambda: 10**9)
    assert checks._page_cache(8 * 10**8).status == "warning"
    assert checks._page_cache(10**8).status == "ok"


def test_an_old_python(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    assert statuses(checks._python()) == {"Python": "warning"}


def test_onednn_switched_off(monkeypatch):
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    assert statuses(checks._processor())["oneDNN"] == "note"
