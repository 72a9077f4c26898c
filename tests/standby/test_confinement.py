"""With a standby running, a program stays in the sandbox, and under the limits, of whoever runs it.

Each row starts the client in its own confinement. The program reports what it is under; the same is asked of a plain
start in the same confinement. Either a child is exactly like it, or the client says why nothing was run.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from glowplug.standby import confinement

from .conftest import SOURCE

# What the program sees of itself. Its own pid and the like are not among it.
REPORT = """
import json, os, resource, signal
status = dict(line.rstrip("\\n").split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
status["SigIgn"] = int(status["SigIgn"], 16) & ~(3 << 31)  # 32 and 33 are the C library's
names = ("Umask", "Uid", "Gid", "Groups", "SigBlk", "SigIgn", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
    "NoNewPrivs", "Seccomp", "Seccomp_filters", "Cpus_allowed_list", "Mems_allowed_list", "THP_enabled")
def text(name):
    try:
        return open(f"/proc/self/{name}").read()
    except OSError as error:
        return error.errno
print(json.dumps([
    {name: status.get(name) for name in names},
    sorted(os.readlink(f"/proc/self/ns/{name}") for name in os.listdir("/proc/self/ns")),
    {name: text(name) for name in ("cgroup", "personality", "oom_score_adj", "timerslack_ns", "coredump_filter")},
    {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")},
    [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.stat("/").st_ino, sorted(os.listdir("/"))],
]))
"""
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_SECUREBITS, PR_SET_TIMERSLACK = 1, 4, 22, 28, 29
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_SET_THP_DISABLE, PR_CAP_AMBIENT = 38, 24, 41, 47
ROOT = os.getuid() == 0


def prctl(*arguments: int) -> Callable[[], None]:
    def change() -> None:
        if LIBC.prctl(*arguments, *[0] * (5 - len(arguments))) < 0:
            os._exit(99)

    return change


def no_new_privs() -> None:
    prctl(PR_SET_NO_NEW_PRIVS, 1)()


def seccomp() -> None:
    """Install a filter that allows everything."""
    no_new_privs()
    program = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
    described = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(program)))
    if LIBC.prctl(PR_SET_SECCOMP, 2, described, 0, 0) < 0:
        os._exit(99)


def landlock() -> None:
    """Forbid making device files, which nothing in /proc shows."""
    no_new_privs()
    attributes = ctypes.create_string_buffer(struct.pack("Q", 1 << 6))
    rules = LIBC.syscall(444, attributes, 8, 0)
    if rules < 0 or LIBC.syscall(446, rules, 0) < 0:
        os._exit(99)


def limit(name: str, soft: int) -> Callable[[], None]:
    kind = getattr(resource, name)
    return lambda: resource.setrlimit(kind, (soft, resource.getrlimit(kind)[1]))


def hard_limit() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))


def write(path: str, text: str) -> Callable[[], None]:
    def change() -> None:
        Path(path).write_text(text)

    return change


def signals() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGALRM, signal.SIGRTMIN + 2])


def input_priority() -> None:
    LIBC.syscall(251 if os.uname().machine == "x86_64" else 30, 1, 0, 3 << 13)


def become_nobody() -> None:
    os.setgroups([])
    os.setgid(65534)


# What a child can be given: the standby is used, and the program is under it.
GIVEN: dict[str, Callable[[], Any]] = {
    "open files": limit("RLIMIT_NOFILE", 300),
    "open files, hard": hard_limit,
    "processor seconds": limit("RLIMIT_CPU", 1000),
    "file size": limit("RLIMIT_FSIZE", 1 << 30),
    "core size": limit("RLIMIT_CORE", 0),
    "umask": lambda: os.umask(0o027),
    "priority": lambda: os.nice(3),
    "batch scheduling": lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)),
    "oom_score_adj": write("/proc/self/oom_score_adj", "500"),
    "timer slack": prctl(PR_SET_TIMERSLACK, 70000),
    "processors": lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1]),
    "ignored and blocked signals": signals,
}
# What it cannot: the program gets a plain start.
WITHHELD: dict[str, Callable[[], Any]] = {
    "no_new_privs": no_new_privs,
    "seccomp": seccomp,
    "Landlock": landlock,
    "address space": limit("RLIMIT_AS", 8 << 30),
    "data": limit("RLIMIT_DATA", 8 << 30),
    "stack": limit("RLIMIT_STACK", 1 << 20),
    "parent-death signal": prctl(PR_SET_PDEATHSIG, signal.SIGUSR1),
    "personality": lambda: LIBC.personality(0x0040000),
    "huge pages": prctl(PR_SET_THP_DISABLE, 1),
    "input/output priority": input_priority,
    "core dump filter": write("/proc/self/coredump_filter", "0x7"),
}
ROOTS_ONLY: dict[str, Callable[[], Any]] = {
    "network namespace": lambda: LIBC.unshare(0x40000000),
    "mount namespace": lambda: LIBC.unshare(0x00020000),
    "host name namespace": lambda: LIBC.unshare(0x04000000),
    "bounding capabilities": prctl(PR_CAPBSET_DROP, 13),
    "securebits": prctl(PR_SET_SECUREBITS, 1),
    "group": become_nobody,
    "supplementary groups": lambda: os.setgroups([1, 2]),
}


@pytest.fixture(scope="module")
def running(make_standby, tmp_path_factory):
    import tempfile

    with tempfile.TemporaryDirectory(prefix="standby-") as directory:
        Path(directory).chmod(0o700)
        found = make_standby(Path(directory), tmp_path_factory.mktemp("scripts"))
        assert found.run("-c", "pass").returncode == 0
        yield found
        for pid in found.pids():
            os.kill(pid, signal.SIGKILL)


def plain(standby, change):
    command = [sys.executable, "-c", REPORT]
    done = subprocess.run(
        command, env=standby.environment, preexec_fn=change, capture_output=True, text=True, cwd=standby.scripts
    )
    if done.returncode == 99:
        pytest.skip("this kernel does not let a process be confined like this")
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", GIVEN)
def test_what_can_be_given_is_given(running, name):
    wanted = plain(running, GIVEN[name])
    done = running.run("-c", REPORT, start=False, preexec_fn=GIVEN[name])
    assert done.stderr == ""
    assert json.loads(done.stdout) == wanted


@pytest.mark.parametrize("name", [*WITHHELD, *ROOTS_ONLY])
def test_what_cannot_be_given_means_a_plain_start(running, name):
    if name in ROOTS_ONLY and not ROOT:
        pytest.skip("only root can be confined like this")
    change = WITHHELD.get(name) or ROOTS_ONLY[name]
    plain(running, change)
    done = running.run("-c", REPORT, start=False, preexec_fn=change)
    assert (done.returncode, done.stdout) == (1, ""), "the program left its sandbox"
    assert done.stderr.startswith("not run: ")


def test_another_root_directory_is_noticed(tmp_path):
    if not ROOT:
        pytest.skip("only root can change its root directory")
    code = f"""
import os, subprocess
from glowplug.core.errors import StandbyError
from glowplug.standby import confinement
before = confinement.lasting()
subprocess.run(["mount", "--bind", "/", {str(tmp_path)!r}], check=True)
subprocess.run(["mount", "--bind", "/proc", {str(tmp_path / "proc")!r}], check=True)
os.chroot({str(tmp_path)!r})
print(confinement.difference(before, confinement.lasting()))
os.chroot("/usr")
try:
    confinement.lasting()
except StandbyError as error:
    print(error.what)
"""
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
    )
    wanted = "root directory\nthere is no /proc to compare this process with a standby's\n"
    assert done.stdout == wanted, done.stderr


def test_the_reason_is_told_to_whoever_asks(running):
    done = subprocess.run(
        [sys.executable, "-m", "glowplug", "run", "--explain", "-c", "print('ran')"],
        env=running.environment,
        preexec_fn=no_new_privs,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "ran\n"
    assert "glowplug: standby: no standby runs that fits: the nearest differs in no_new_privs" in done.stderr


def test_a_confined_caller_can_have_a_standby_of_its_own(standby):
    first = standby.run("-c", REPORT)
    second = standby.run("-c", REPORT, preexec_fn=no_new_privs)
    assert (json.loads(first.stdout)[0]["NoNewPrivs"], json.loads(second.stdout)[0]["NoNewPrivs"]) == ("0", "1")
    assert len(standby.pids()) == 2


def test_signals_that_the_c_library_keeps_to_itself_make_no_difference(running):
    """Whoever starts everything with all signals ignored ignores these two as well: no program can, or can tell."""

    def ignore() -> None:
        if os.uname().machine != "x86_64":
            os._exit(99)
        for number in (32, 33):
            if LIBC.syscall(13, number, struct.pack("QQQQ", signal.SIG_IGN, 0, 0, 0), None, 8) < 0:  # rt_sigaction
                os._exit(99)

    plain(running, ignore)
    assert running.run("-c", "print('ran')", start=False, preexec_fn=ignore).stdout == "ran\n"


def test_a_process_that_has_ended_is_not_one_that_is_kept_apart():
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is there, and in no namespace any more
    with pytest.raises(ProcessLookupError):
        confinement.can_see(process.pid)
    process.wait()


def test_it_costs_little():
    import time

    confinement.read()
    costs = []
    for _ in range(20):
        began = time.thread_time()  # of this thread alone: others may have the processors
        confinement.read()
        costs.append(time.thread_time() - began)
    assert min(costs) < 0.002


def test_a_process_with_children_keeps_them(standby):
    standby.run("-c", "pass")
    command = [
        "sh",
        "-c",
        'sleep 5 >/dev/null 2>&1 & exec "$@"',
        "sh",
        *standby.command("-c", "print('ran')", start=False),
    ]
    done = subprocess.run(command, env=standby.environment, capture_output=True, text=True, timeout=20, cwd="/")
    assert "not run: this process has children already" in done.stderr


def test_a_terminal_elsewhere_means_a_plain_start(standby):
    """With a controlling terminal that is none of its streams: /dev/tty would be gone in a child."""
    standby.run("-c", "pass")
    code = f"""
import os, pty, subprocess, sys
pid, outer = pty.fork()
if pid == 0:
    with open({str(standby.scripts / "out")!r}, "w") as out:
        done = subprocess.run({standby.command("-c", "print('ran')", start=False)!r},
            stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    os._exit(0)
while True:
    try:
        if not os.read(outer, 100):
            break
    except OSError:
        break
os.waitpid(pid, 0)
"""
    subprocess.run([sys.executable, "-c", code], env=standby.environment, check=True, timeout=30)
    assert "not run: the terminal that controls" in (standby.scripts / "out").read_text()
