"""`python -m tests.cluster ARGS`: tests in a network namespace of their own, which has nothing but loopback.

Ray looks for the address by which a machine reaches the internet, and nodes of one machine then speak to each other
through it, past firewalls that may hold them up. Where there is only loopback it takes that. A user other than root
gets a user namespace along with it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

ALONE = "GLOWPLUG_TESTS_ON_LOOPBACK"
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_SIOCSIFFLAGS, _UP_AND_RUNNING = 0x8914, 0x1 | 0x40


def enter() -> None:
    """Leave the network for a namespace that has only loopback, which is up."""
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    flags = _NEW_NET | (_NEW_USER if user else 0)
    if libc.unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _UP_AND_RUNNING))


def main() -> None:
    """Become pytest, with a second look at what fails, or the program that follows `--`."""
    try:
        enter()
    except OSError as error:
        print(f"tests with Ray are skipped: no network namespace here ({error}); be root, or allow user namespaces")
        return
    os.environ[ALONE] = "1"
    arguments = sys.argv[1:]
    tests = ["-m", "tests.second_look", "--in-turn", *(arguments or ["tests/cluster"])]
    command = arguments[1:] if arguments[:1] == ["--"] else tests
    os.execv(sys.executable, [sys.executable, *command])


if __name__ == "__main__":
    main()
