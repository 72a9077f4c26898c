"""CephFS: one monitor, manager, OSD and metadata server, mounted with ceph-fuse. All of it as root, as mounting is."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.components import processes

PROGRAMS = ("ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse", "ceph", "monmaptool", "ceph-authtool")
_OSD_BYTES = 6 << 30  # of a file with holes
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class CephFS:
    """A running one, and where it is mounted."""

    mount: Path


def why_not() -> str:
    """Say why it cannot be started here; an empty text where it can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"there is no {missing[0]}: `make test-storage` installs Ceph where it runs as root"
    if os.geteuid() != 0:
        return "mounting CephFS needs root"
    return "" if Path("/dev/fuse").exists() else "there is no /dev/fuse"


@contextlib.contextmanager
def running(folder: Path) -> Iterator[CephFS]:
    """A cluster with its data below `folder`, mounted there, for the length of a block."""
    configuration, log, identity = folder / "ceph.conf", folder / "log", str(uuid.uuid4())
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("mon", "mgr", "osd", "mds", "run", "mount"):
        (folder / name).mkdir()
    v2, v1 = processes.free_ports(2)
    addresses = f"[v2:127.0.0.1:{v2},v1:127.0.0.1:{v1}]"
    configuration.write_text(_SETTINGS.format(fsid=identity, addresses=addresses, folder=folder))
    keyring = folder / "keyring"
    keyring.touch()
    with contextlib.ExitStack() as started:

        def run(*command: object) -> str:
            words = [str(part) for part in command]
            done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_S)
            assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
            return done.stdout

        def serve(*command: object) -> subprocess.Popen[bytes]:
            process = processes.start([*map(str, command), "-c", str(configuration), "-f"], log)
            started.callback(processes.stop, process)
            return process

        def ceph(*command: object) -> str:
            return run("ceph", "-c", configuration, "--connect-timeout", 30, *command)

        run("monmaptool", "--create", "--addv", "a", addresses, "--fsid", identity, folder / "monmap")
        run("ceph-mon", "-c", configuration, "--mkfs", "-i", "a", "--monmap", folder / "monmap", "--keyring", keyring)
        serve("ceph-mon", "-i", "a")
        unit = str(uuid.uuid4())
        ceph("osd", "new", unit)
        with (folder / "osd" / "block").open("wb") as block:
            block.truncate(_OSD_BYTES)
        run("ceph-osd", "-c", configuration, "-i", 0, "--mkfs", "--osd-uuid", unit)
        serve("ceph-mgr", "-i", "x")
        serve("ceph-osd", "-i", 0)
        metadata = serve("ceph-mds", "-i", "a")
        for pool in ("metadata", "data"):
            ceph("osd", "pool", "create", pool, 8)
        ceph("fs", "new", "files", "metadata", "data")
        processes.wait_until(lambda: _is_active(ceph("mds", "stat", "-f", "json")), metadata, log)
        mount = folder / "mount"
        client = serve("ceph-fuse", "-n", "client.admin", mount)
        processes.wait_until(mount.is_mount, client, log)
        started.callback(subprocess.run, ["umount", "--lazy", str(mount)], check=False)
        yield CephFS(mount)


def _is_active(status: str) -> bool:
    maps = json.loads(status)["fsmap"]["filesystems"]
    return any("up:active" in str(one["mdsmap"]["info"]) for one in maps)


_SETTINGS = """\
[global]
fsid = {fsid}
mon host = {addresses}
auth cluster required = none
auth service required = none
auth client required = none
public network = 127.0.0.0/8
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail crit = 1
bluestore block size = 6442450944
bluestore block create = true
osd memory target = 939524096
run dir = {folder}/run
admin socket = {folder}/run/$name.$pid.asok
pid file = {folder}/run/$name.pid
log file = {folder}/run/$name.log
keyring = {folder}/keyring
mon data = {folder}/mon
mgr data = {folder}/mgr
osd data = {folder}/osd
mds data = {folder}/mds
crash dir = {folder}/run
"""
