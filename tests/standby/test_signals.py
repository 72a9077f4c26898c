"""Signals of every kind reach the program; the client is stopped, continued and ended as the program would be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = """
import signal, sys, time
seen = []
def handler(number, frame):
    seen.append(number)
    print('got', number, flush=True)
for number in signal.valid_signals():
    if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD):
        signal.signal(number, handler)
print('ready', flush=True)
while len(seen) < int(sys.argv[1]):
    time.sleep(0.01)  # not `pause`, which sleeps on where a signal came just before it
"""
EVERY = [int(number) for number in signal.valid_signals()]
EVERY = [number for number in EVERY if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD)]


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_every_signal_reaches_the_program(standby):
    process = standby.begin("-c", COUNT, str(len(EVERY)))
    assert process.stdout.readline() == "ready\n"
    for number in EVERY:
        process.send_signal(number)
        assert process.stdout.readline() == f"got {number}\n"
    assert process.wait(20) == 0


def test_queued_signals_keep_their_number_and_value(standby):
    code = """
import signal
wanted = [signal.SIGRTMIN + 1]
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
print('ready', flush=True)
import ctypes
class Info(ctypes.Structure):
    _fields_ = [('head', ctypes.c_int * 6), ('value', ctypes.c_int), ('rest', ctypes.c_char * 100)]
mask = (ctypes.c_uint64 * 16)(1 << (signal.SIGRTMIN + 1 - 1))
for _ in range(3):
    info = Info()
    ctypes.CDLL(None).sigwaitinfo(mask, ctypes.byref(info))
    print(info.value, flush=True)
"""
    process = standby.begin("-c", code)
    assert process.stdout.readline() == "ready\n"
    import ctypes

    for value in (5, 6, 7):
        assert ctypes.CDLL(None).sigqueue(process.pid, signal.SIGRTMIN + 1, ctypes.c_void_p(value)) == 0
    out, err = process.communicate(timeout=20)
    assert (out, err) == ("5\n6\n7\n", "")


def test_an_ignored_signal_stays_ignored_until_the_program_says_otherwise(standby):
    code = """
import signal, sys, time
signal.signal(signal.SIGXCPU, lambda *_: print('after it', flush=True))
print(signal.getsignal(signal.SIGTERM) == signal.SIG_IGN, flush=True)
sys.stdin.readline()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
print('handled', flush=True)
while True:
    time.sleep(0.01)
"""
    process = standby.begin("-c", code, preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN))
    assert process.stdout.readline() == "True\n"
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGXCPU)  # a higher number: it is passed on later
    assert process.stdout.readline() == "after it\n"
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "handled\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 5


def test_an_ignored_sigterm_is_ignored_by_the_command_too(standby):
    command = [sys.executable, "-m", "glowplug", "run", "-c"]
    code = "import signal; print(signal.getsignal(signal.SIGTERM) == signal.SIG_IGN)"
    done = subprocess.run(
        [*command, code],
        env=standby.environment,
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    )
    assert done.stdout == "True\n"


def test_a_stopped_client_stops_its_program(standby, wait_until):
    code = "import os, sys; print(os.getpid(), flush=True); print('went on', sys.stdin.readline())"
    process = standby.begin("-c", code)
    pid = int(process.stdout.readline())
    for _ in range(2):
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: state(pid) == "T")
        os.kill(process.pid, signal.SIGCONT)
        wait_until(lambda: state(pid) == "S" and state(process.pid) == "S")
    out, _ = process.communicate("line\n", timeout=20)
    assert (out, process.returncode) == ("went on line\n\n", 0)


def test_an_alarm_of_the_program_is_its_own(standby):
    done = standby.run("-c", "import signal; signal.alarm(1); signal.pause()")
    assert done.returncode == -signal.SIGALRM


def test_a_limit_of_processor_time_ends_the_program(standby):
    import resource

    standby.run("-c", "pass")
    done = standby.run(
        "-c", "while True: pass", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (1, 5)), start=False
    )
    assert done.returncode == -signal.SIGXCPU


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV, signal.SIGALRM, signal.SIGRTMIN + 3])
def test_a_signal_that_ends_the_program_ends_the_client(standby, number):
    process = standby.begin("-c", "import signal; print('ready', flush=True); signal.pause()")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.wait(20) == -number
