"""The target must not be able to tell that it is profiled: no TensorFlow here, plain processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from glowplug.core.profile import Profile
from glowplug.probe.run import profile_target

REPORT = """
import json, os, signal, sys
print(json.dumps({
    "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "name": __name__, "flags": list(sys.flags),
    "environ": dict(os.environ), "file": globals().get("__file__"), "spec": repr(__spec__),
    "sitecustomize": "sitecustomize" in sys.modules, "stdin": sys.stdin.read(),
    "sigint": repr(signal.getsignal(signal.SIGINT)), "sigterm": repr(signal.getsignal(signal.SIGTERM)),
    "cwd": os.getcwd(), "excepthook": repr(sys.excepthook is sys.__excepthook__),
    "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) < 3),
}))
"""


def run_profiled(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[Profile, str, str]:
    profile = profile_target(list(words))
    out, err = capfd.readouterr()
    return profile, out, err


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("pythonpath", [None, "", "/somewhere", "/a:/b"])
def test_the_target_sees_what_it_would_see(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, pythonpath: str | None
) -> None:
    if pythonpath is None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONPATH", pythonpath)
    script = write(tmp_path / "report.py", REPORT)
    read, send = os.pipe()
    os.write(send, b"some input\n")
    os.close(send)
    saved = os.dup(0)
    os.dup2(read, 0)
    try:
        _, out, err = run_profiled(capfd, script, "one", "--two")
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        os.close(read)
    command = [sys.executable, script, "one", "--two"]
    environment = dict(os.environ)  # readline in this process puts COLUMNS into the C environment only
    plain = subprocess.run(command, input="some input\n", capture_output=True, text=True, check=True, env=environment)
    ours, theirs = json.loads(out), json.loads(plain.stdout)
    assert set(ours.pop("environ").items()) ^ set(theirs.pop("environ").items()) == set()
    assert ours == theirs
    assert err == plain.stderr == ""


def test_module_and_code(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "tool.py", "import sys; print(__name__, sys.argv[1:], __spec__.name)")
    _, out, _ = run_profiled(capfd, "-m", "tool", "x")
    assert out == "__main__ ['x'] tool\n"
    _, out, _ = run_profiled(capfd, "-c", "import sys; print(sys.argv)", "y")
    assert out == "['-c', 'y']\n"


def test_a_sitecustomize_that_is_not_there_is_no_import_of_the_programs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    profile, _, _ = run_profiled(capfd, "-c", "import json")
    assert "sitecustomize" not in {span.name for span in profile.spans}


def test_an_existing_sitecustomize_still_runs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "sitecustomize.py", "import builtins; builtins.mine = 'ran'")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    _, out, _ = run_profiled(capfd, "-c", "import sitecustomize; print(mine, sitecustomize.__file__)")
    assert out.split() == ["ran", str(tmp_path / "sitecustomize.py")]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pass", 0),
        ("raise SystemExit(7)", 7),
        ("1/0", 1),
        ("import os; os._exit(9)", 9),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("import ctypes; ctypes.string_at(0)", -signal.SIGSEGV),
        ("import os; os.abort()", -signal.SIGABRT),
    ],
)
def test_exit_codes_and_a_profile_whatever_happens(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], code: str, expected: int
) -> None:
    script = write(tmp_path / "target.py", f"import json\n{code}\n")
    profile, _, _ = run_profiled(capfd, script)
    assert profile.exit_code == expected
    assert sum(profile.phases.values()) == profile.wall_ns
    assert "json" in {span.name for span in profile.of_kind("module")}
    assert next(profile.of_kind("main")).duration_ns > 0


def test_tracebacks_do_not_show_the_probe(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "broken.py", "import no_such_module_at_all\n")
    script = write(tmp_path / "target.py", "import warnings\nimport broken\n")
    _, _, err = run_profiled(capfd, script)
    plain = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert err == plain.stderr
    assert "no_such_module_at_all" in err


def test_warnings_point_at_the_importing_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "old.py", "import warnings\nwarnings.warn('old module', stacklevel=2)\n")
    script = write(tmp_path / "target.py", "pass\nimport old\n")
    _, _, err = run_profiled(capfd, script)
    assert "target.py:2: UserWarning: old module" in err


def test_environment_changes_of_the_target_reach_its_children(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = """
import os, subprocess, sys
os.environ["PYTHONPATH"] = "/mine"
show = "import os; print(os.environ.get('PYTHONPATH'))"
subprocess.run([sys.executable, "-c", show])
del os.environ["PYTHONPATH"]
subprocess.run([sys.executable, "-c", show])
subprocess.run([sys.executable, "-c", show], env={"PYTHONPATH": "/other"})
subprocess.run([sys.executable, "-c", show], env={})
os.system(f'{sys.executable} -c "{show}"')
sys.stdout.flush()
os.execve(sys.executable, [sys.executable, "-c", show], {"PYTHONPATH": "/last"})
"""
    profile, out, _ = run_profiled(capfd, write(tmp_path / "target.py", code))
    assert out.split() == ["/mine", "None", "/other", "None", "None", "/last"]
    followed = [process for process in profile.processes if process.python]
    assert len(followed) == 6  # five children, and the target, which is also the last program
    assert profile.exit_code == 0


def test_signals_sent_to_the_profiler_reach_the_target(tmp_path: Path) -> None:
    script = write(
        tmp_path / "target.py",
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "print('ready', flush=True)\n"
        "while True:\n    time.sleep(0.01)\n",
    )
    code = f"from glowplug.probe.run import profile_target; print(profile_target([{script!r}]).exit_code)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as profiler:
        assert profiler.stdout is not None
        assert profiler.stdout.readline() == "ready\n"
        profiler.send_signal(signal.SIGTERM)
        assert profiler.stdout.read() == "5\n"


def test_ctrl_c_reaches_the_target_once(tmp_path: Path) -> None:
    script = write(
        tmp_path / "target.py",
        "import time\n"
        "try:\n    print('ready', flush=True)\n    while True:\n        time.sleep(0.01)\n"
        "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n",
    )
    code = f"from glowplug.probe.run import profile_target; print(profile_target([{script!r}]).exit_code)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as profiler:
        assert profiler.stdout is not None
        assert profiler.stdout.readline() == "ready\n"
        os.killpg(profiler.pid, signal.SIGINT)  # what a terminal does
        assert profiler.stdout.read() == "interrupted\n0\n"


def test_the_probe_is_no_part_of_the_import_tree(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A package by the name of one that has instruments makes the probe load them; nothing of them is recorded."""
    write(tmp_path / "safetensors.py", "import colorsys\n")
    code = "import sys\nimport safetensors\nprint(sum(not n.startswith('_glowplug') for n in sys.modules))\n"
    script = write(tmp_path / "target.py", code)
    profile, out, _ = run_profiled(capfd, script)
    modules = list(profile.of_kind("module"))
    assert {"safetensors", "colorsys"} <= {span.name for span in modules}
    for span in modules:
        assert not span.name.startswith("_glowplug")
        assert not str(span.attrs.get("importer", "")).startswith("_glowplug")
    (outer,) = (span for span in modules if span.name == "safetensors")
    assert outer.attrs["modules"] == 2
    assert profile.environment["modules"] == int(out)
