"""A program that runs through a standby is, for whoever started it, the program itself."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest


def test_output_arguments_and_exit_code(standby):
    script = standby.script("import sys; print(sys.argv[1:]); print('bad', file=sys.stderr); sys.exit(7)")
    done = standby.run(script, "a", "b c")
    assert (done.returncode, done.stdout, done.stderr) == (7, "['a', 'b c']\n", "bad\n")


def test_standard_input_and_working_directory(standby, tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    done = standby.run("-c", "import sys, os; print(sys.stdin.read(), os.getcwd())", input="typed", cwd=folder)
    assert done.stdout == f"typed {folder}\n"


def test_a_traceback_shows_the_program_alone(standby):
    script = standby.script("def f():\n    raise KeyError(3)\nf()\n")
    done = standby.run(script)
    assert done.returncode == 1
    assert done.stderr.count("File ") == 2
    assert done.stderr.endswith("KeyError: 3\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_death_by_a_signal_is_passed_on(standby, number):
    done = standby.run("-c", f"import os; os.kill(os.getpid(), {int(number)})")
    assert done.returncode == -number


def test_a_keyboard_interrupt_ends_like_pythons_own(standby):
    assert standby.run("-c", "raise KeyboardInterrupt").returncode == -signal.SIGINT


def test_environment_umask_limits_affinity_and_ignored_signals_are_the_callers(standby):
    report = """
import json, os, resource, signal
mask = os.umask(0)
print(json.dumps([os.environ.get("COLOUR"), "GONE" in os.environ, mask, resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    sorted(os.sched_getaffinity(0)), signal.getsignal(signal.SIGHUP) == signal.SIG_IGN]))
"""
    standby.run("-c", "pass", env={**standby.environment, "GONE": "1"})
    wanted = sorted(os.sched_getaffinity(0))[:1]

    def change() -> None:
        os.umask(0o027)
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        os.sched_setaffinity(0, wanted)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    done = standby.run("-c", report, env={**standby.environment, "COLOUR": "red"}, preexec_fn=change)
    assert json.loads(done.stdout) == ["red", False, 0o027, 300, wanted, True]
    assert len(standby.pids()) == 1


def test_further_descriptors_are_passed_on(standby):
    readable, writable = os.pipe()
    os.write(writable, b"through")
    os.close(writable)
    done = standby.run("-c", f"import os; print(os.read({readable}, 9))", pass_fds=[readable])
    os.close(readable)
    assert done.stdout == "b'through'\n"


def test_a_closed_standard_input_stays_closed(standby):
    done = standby.run("-c", "import sys; print(sys.stdin)", preexec_fn=lambda: os.close(0))
    assert done.stdout == "None\n"


def test_preloaded_modules_are_hidden_until_they_are_imported(standby):
    code = "import sys; print('numpy' in sys.modules); import numpy; print(numpy.__spec__.name, numpy.ones(2).sum())"
    done = standby.run("-c", code)
    assert (done.stdout, done.stderr) == ("False\nnumpy 2.0\n", "")


def test_pickling_reload_and_submodules_of_preloaded_packages(standby):
    code = """
import pickle, importlib, numpy.linalg, numpy.fft
print(pickle.loads(pickle.dumps(numpy.float32(2))), numpy.linalg.norm([3, 4]))
print(importlib.reload(numpy.fft) is numpy.fft)
"""
    assert standby.run("-c", code).stdout == "2.0 5.0\nTrue\n"


def test_randomness_differs_between_children(standby):
    code = """
import random, tempfile, uuid, numpy
print(random.random(), numpy.random.rand(), uuid.uuid4(), next(tempfile._get_candidate_names()))
"""
    first, second = (standby.run("-c", code).stdout.split() for _ in range(2))
    assert len(first) == 4
    assert all(a != b for a, b in zip(first, second, strict=True))


def test_numpys_threads_are_the_callers(standby):
    code = """
import os, numpy
before = len(os.listdir("/proc/self/task"))
a = numpy.ones((600, 600)); a @ a
print(os.environ.get("OPENBLAS_NUM_THREADS"), before)
"""
    one = standby.run("-c", code, env={**standby.environment, "OPENBLAS_NUM_THREADS": "1"})
    two = standby.run("-c", code, env={**standby.environment, "OPENBLAS_NUM_THREADS": "2"})
    assert (one.stdout, two.stdout) == ("1 1\n", "2 2\n")
    assert len(standby.pids()) == 1


def test_the_garbage_collector_is_on(standby):
    assert standby.run("-c", "import gc; print(gc.isenabled())").stdout == "True\n"


def test_exit_handlers_run_and_open_files_are_written(standby, tmp_path):
    script = standby.script("import atexit; f = open('left.txt', 'w'); f.write('kept'); atexit.register(print, 'bye')")
    assert standby.run(script).stdout == "bye\n"
    assert (tmp_path / "left.txt").read_text() == "kept"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_signals_reach_the_program(standby, number):
    code = f"""
import signal, sys, time
def handler(number, frame):
    print('got', number, flush=True)
    sys.exit(4)
signal.signal({int(number)}, handler)
print('ready', flush=True)
while True:
    time.sleep(0.01)
"""
    process = standby.begin("-c", code)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=20)
    assert (out, process.returncode) == (f"got {int(number)}\n", 4)


def test_stopping_and_continuing(standby, wait_until):
    code = "print('ready', flush=True); print('went on', input(), flush=True)"
    # In a group of its own below this process: the kernel does not stop a group that no shell could continue.
    process = standby.begin("-c", code, preexec_fn=os.setpgrp)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTSTP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate("line\n", timeout=20)
    assert (out, process.returncode) == ("went on line\n", 0)


def test_a_killed_client_takes_its_program_with_it(standby, wait_until):
    process = standby.begin("-c", "import os, signal; print(os.getpid(), flush=True); signal.pause()")
    pid = int(process.stdout.readline())
    process.kill()
    process.communicate()
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_without_start_nothing_is_started(standby):
    done = standby.run("-c", "print(1)", start=False)
    assert (done.stdout, done.stderr, standby.pids()) == ("", "not run: no standby runs\n", [])


@pytest.mark.parametrize("name", ["numpy.py", "contextlib.py"])
def test_a_file_that_hides_a_preloaded_module_means_a_plain_start(standby, name):
    standby.script("raise SystemExit('hidden')", name)
    done = standby.run(standby.script("import numpy"), cwd="/")
    assert done.stderr.startswith(f"not run: {name[:-3]} in the program's folder")


def test_a_program_that_sets_what_is_read_at_import_means_a_plain_start(standby):
    script = standby.script("import os\nos.environ['KERAS_BACKEND'] = 'jax'\n")
    assert "not run: the program itself sets KERAS_BACKEND" in standby.run(script).stderr
    late = standby.script("import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\nprint('ran')")
    assert standby.run(late).stdout == "ran\n"


def test_subprocesses_of_a_program_work(standby):
    code = (
        "import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'print(5)'], capture_output=True).stdout)"
    )
    assert standby.run("-c", code).stdout == "b'5\\n'\n"


def test_multiprocessing_works(standby):
    script = standby.script(
        "import multiprocessing as m\n"
        "def f(x):\n    return x * x\n"
        "if __name__ == '__main__':\n"
        "    for kind in ('fork', 'spawn'):\n"
        "        with m.get_context(kind).Pool(2) as pool:\n            print(pool.map(f, [2, 3]))\n"
    )
    assert standby.run(script).stdout == "[4, 9]\n[4, 9]\n"


def test_nothing_is_left_open_in_a_child(standby):
    done = standby.run("-c", "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))")
    plain = subprocess.run(
        [os.sys.executable, "-c", "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))"],
        capture_output=True,
        text=True,
    )
    extra = set(json.loads(done.stdout)) - set(json.loads(plain.stdout))
    assert len(extra) <= 2  # the connection, and the directory that is being listed
