"""A processor that announces AMX and of which TensorFlow dies. Children are real and die of real signals."""

from __future__ import annotations

import platform
import signal
import subprocess
import sys

import pytest

from glowplug.cli import checks
from glowplug.runtime import amx, fingerprint

DIES = "import os, signal; os.kill(os.getpid(), signal.{})"


@pytest.fixture
def announced(monkeypatch):
    """A processor that announces AMX, and whose child ends as a test says."""

    def announce(code: str) -> None:
        monkeypatch.delenv(amx.CURE[0], raising=False)
        monkeypatch.setattr(fingerprint, "cpu_features", lambda: ("amx_bf16", "amx_tile", "avx512f"))
        child = [sys.executable, "-I", "-S", "-c", code]
        monkeypatch.setattr(amx, "ask", lambda _, ask=amx.ask: ask(child))

    amx.answer.cache_clear()
    yield announce
    amx.answer.cache_clear()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (DIES.format("SIGILL"), "traps"),
        (DIES.format("SIGSEGV"), "traps"),
        (DIES.format("SIGKILL"), "unknown"),
        ("", "works"),
        ("raise SystemExit(3)", "absent"),
        ("raise SystemExit(4)", "unknown"),
    ],
)
def test_the_end_of_the_child_is_the_answer(announced, code, expected):
    announced(code)
    assert amx.answer() == expected
    assert amx.needs_cure() == (expected == "traps")


def test_a_child_that_cannot_be_started_or_does_not_end_says_nothing(monkeypatch):
    assert amx.ask(["/nonexistent"]) == "unknown"
    monkeypatch.setattr(amx, "_PATIENCE_SECONDS", 0.01)
    assert amx.ask([sys.executable, "-c", "import time; time.sleep(600)"]) == "unknown"


def test_no_child_where_nothing_is_announced(monkeypatch):
    monkeypatch.setattr(fingerprint, "cpu_features", lambda: ("avx2",))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a child was started"))
    assert amx.answer.__wrapped__() == "absent"


@pytest.mark.parametrize(
    ("value", "needed"),
    [("", True), ("ALL", True), ("default", True), ("AVX512_CORE_AMX", True), ("AVX2", False), (amx.CURE[1], False)],
)
def test_what_onednn_was_told(announced, value, needed):
    announced(DIES.format("SIGILL"))
    assert amx.needs_cure({amx.CURE[0]: value}) is needed


def test_instructions_that_work_are_no_proof(announced, monkeypatch):
    """TensorFlow may die of a product where each instruction works alone."""
    announced("")
    ends = iter(["works", "traps"])
    monkeypatch.setattr(amx, "ask", lambda _: next(ends))
    assert amx.answer() == "traps"


def test_the_children_themselves_give_an_answer_here(monkeypatch):
    monkeypatch.setenv(*amx.CURE)  # which is kept from them
    assert amx.ask([sys.executable, "-I", "-S", amx.__file__]) in ("absent", "works", "traps")
    assert amx.ask(amx._multiplying()) in ("works", "traps")
    code = f"import os; raise SystemExit(os.environ.get({amx.CURE[0]!r}) is not None)"
    assert amx.ask([sys.executable, "-c", code]) == "works"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86")
def test_a_processor_that_traps(tmp_path):
    """Without the permission that the child asks for, every processor does, whether it has AMX or not."""
    child = f"import runpy; runpy.run_path({amx.__file__!r})['_execute']()"
    assert amx.ask([sys.executable, "-I", "-S", "-c", child]) == "traps"
    assert subprocess.run([sys.executable, "-c", child], cwd=tmp_path, capture_output=True).returncode == -signal.SIGILL
    assert not list(tmp_path.iterdir())  # no core dump


def test_doctor_names_the_cure_and_the_cure_cures(announced, monkeypatch):
    announced(DIES.format("SIGILL"))
    (found,) = (check for check in checks._processor() if check.subject == "AMX")
    assert found.status == "broken"
    assert found.remedy == "export ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16"
    monkeypatch.setenv(*found.remedy.removeprefix("export ").split("="))
    (found,) = (check for check in checks._processor() if check.subject == "AMX")
    assert found.status == "note"


def test_doctor_is_silent_about_what_works(announced):
    announced("")
    assert [check for check in checks._processor() if check.subject == "AMX"] == []
