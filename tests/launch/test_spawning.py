"""Functions in warm processes of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

import glowplug
from glowplug.core.errors import UsageError

CODE = """
import sys, glowplug
numpy = {"preload": ("numpy",)}
done = glowplug.spawn("work:add", 2, [3], **numpy)
print(done.wait(), done.wait() == done.returncode)
print(glowplug.spawn("work:fail", **numpy).wait())
with glowplug.spawn("work:hang", **numpy) as hanging:
    try:
        hanging.wait(0.05)
    except TimeoutError:
        print("still runs")
    hanging.terminate()
    print(hanging.wait())
with glowplug.spawn("work:hang", **numpy) as hanging:
    pass
print(hanging.returncode)
"""
WORK = """
import signal
def add(a, b):
    print("adding", flush=True)
    return a + b[0]
def fail():
    raise KeyError("it")
def hang():
    signal.pause()
"""


def test_exit_codes_signals_and_blocks(standby, tmp_path):
    standby.script(WORK, "work.py")
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=standby.environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split("\n") == ["adding", "5 True", "1", "still runs", "-15", "-9", ""]
    assert done.stderr.endswith("KeyError: 'it'\n")


@pytest.mark.parametrize(("target", "argument"), [("no_function", 1), ("a.module:function", object())])
def test_what_cannot_be_spawned(target, argument):
    with pytest.raises(UsageError):
        glowplug.spawn(target, argument)
