"""Hosts on this machine: network namespaces, each with a cable of its own behind a token bucket. Needs root."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Host:
    """A namespace. `gateway` is this machine's address as seen from it."""

    name: str
    gateway: str

    @property
    def prefix(self) -> list[str]:
        """The words before a command that make it run there."""
        return ["ip", "netns", "exec", self.name]


@contextlib.contextmanager
def hosts(count: int, rate: str = "2gbit") -> Iterator[list[Host]]:
    """So many hosts for the length of a block; what they receive passes a token bucket of that rate."""
    made = []
    with contextlib.ExitStack() as undo:
        for number in range(count):
            name, cable = f"glow{os.getpid()}-{number}", f"gl{os.getpid() % 100000}{number}"
            _run("ip", "netns", "add", name)
            undo.callback(subprocess.run, ["ip", "netns", "delete", name], check=False)
            _run("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
            undo.callback(subprocess.run, ["ip", "link", "delete", cable], check=False, stderr=subprocess.DEVNULL)
            gateway, address = f"10.231.{number}.1", f"10.231.{number}.2"
            _run("ip", "address", "add", f"{gateway}/30", "dev", cable)
            _run("ip", "link", "set", cable, "up")
            _run("tc", "qdisc", "add", "dev", cable, "root", "tbf", "rate", rate, "burst", "1mb", "latency", "50ms")
            inside = ["ip", "-n", name]
            _run(*inside, "address", "add", f"{address}/30", "dev", "eth0")
            _run(*inside, "link", "set", "eth0", "up")
            _run(*inside, "link", "set", "lo", "up")
            made.append(Host(name, gateway))
        yield made


def _run(*words: str) -> None:
    subprocess.run(words, check=True)
