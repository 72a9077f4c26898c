"""HDFS: a NameNode and two DataNodes, from jars that `make test-storage` collects (`tests/components/install.py`)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from tests.components import processes

JARS = Path(__file__).resolve().parents[2] / ".venvs" / "hdfs" / "jars"
# Of Debian: what a server needs beyond the jars of a client.
SYSTEM_JARS = tuple(
    Path("/usr/share/java", f"{name}.jar")
    for name in ("jersey1-core", "jersey1-server", "jersey1-servlet", "jsr311-api", "asm", "commons-daemon")
)
BLOCK_BYTES = 1 << 20  # the smallest that a NameNode takes
_OPENED = ("java.lang", "java.util", "java.nio", "java.net", "sun.nio.ch")
_SERVERS = "org.apache.hadoop.hdfs.server"
_STATE = "Hadoop:service=NameNode,name=FSNamesystemState"


@dataclass(frozen=True, slots=True)
class Hdfs:
    """A running one. Every block is on both DataNodes."""

    port: int
    configuration: Path
    datanodes: tuple[subprocess.Popen[bytes], ...]

    def environment(self) -> dict[str, str]:
        """Return the variables with which clients find it."""
        return {"HADOOP_CONF_DIR": str(self.configuration), "HADOOP_USER_NAME": "glowplug"}

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"hdfs://127.0.0.1:{self.port}/{path}"


def why_not() -> str:
    """Say why it cannot be started here; an empty text where it can."""
    if shutil.which("java") is None:
        return "there is no Java"
    missing = [str(path) for path in SYSTEM_JARS if not path.exists()]
    if missing:
        return f"Debian's jars are missing ({missing[0]} …): `make test-storage` installs them where it runs as root"
    return (
        "" if any(JARS.glob("hadoop-hdfs-*.jar")) else "the jars of HDFS are missing: `make test-storage` fetches them"
    )


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Hdfs]:
    """A NameNode and two DataNodes with their data below `folder`, for the length of a block."""
    with contextlib.ExitStack() as started:
        rpc, http, *others = processes.free_ports(8)
        common = {
            "fs.defaultFS": f"hdfs://127.0.0.1:{rpc}",
            "hadoop.tmp.dir": str(folder / "tmp"),
            "dfs.namenode.rpc-address": f"127.0.0.1:{rpc}",
            "dfs.namenode.http-address": f"127.0.0.1:{http}",
            "dfs.namenode.name.dir": str(folder / "name"),
            "dfs.namenode.safemode.extension": "0",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.permissions.enabled": "false",
            "dfs.replication": "2",
            "dfs.blocksize": str(BLOCK_BYTES),
        }
        configuration = _configure(folder / "namenode", common)
        log = folder / "namenode.log"
        namenode = f"{_SERVERS}.namenode.NameNode"
        formatted = processes.start([*_java(configuration), namenode, "-format", "-nonInteractive"], log)
        assert formatted.wait(60) == 0, log.read_text()
        server = processes.start([*_java(configuration), namenode], log)
        started.callback(processes.stop, server)
        datanodes = []
        for number in (0, 1):
            address, ipc, web = others[3 * number : 3 * number + 3]
            own = {
                "dfs.datanode.address": f"127.0.0.1:{address}",
                "dfs.datanode.ipc.address": f"127.0.0.1:{ipc}",
                "dfs.datanode.http.address": f"127.0.0.1:{web}",
                "dfs.datanode.data.dir": str(folder / f"data{number}"),
            }
            place = _configure(folder / f"datanode{number}", {**common, **own})
            command = [*_java(place), f"{_SERVERS}.datanode.DataNode"]
            datanodes.append(processes.start(command, folder / f"datanode{number}.log"))
            started.callback(processes.stop, datanodes[-1])
        processes.wait_until(lambda: _live_datanodes(http) == 2, server, log)
        yield Hdfs(rpc, configuration, tuple(datanodes))


def _configure(folder: Path, settings: Mapping[str, str]) -> Path:
    """Write the configuration of one process; the empty web applications are looked for on the class path."""
    rows = "".join(f"<property><name>{n}</name><value>{escape(v)}</value></property>" for n, v in settings.items())
    document = f"<configuration>{rows}</configuration>"
    folder.mkdir(parents=True)
    for name in ("core-site.xml", "hdfs-site.xml"):
        (folder / name).write_text(document)
    for name in ("hdfs", "datanode"):
        web = folder / "webapps" / name / "WEB-INF"
        web.mkdir(parents=True)
        (web / "web.xml").write_text("<web-app/>")
    return folder


def _java(configuration: Path) -> list[str]:
    jars = sorted(str(path) for path in JARS.glob("*.jar"))
    classes = os.pathsep.join([str(configuration), *map(str, SYSTEM_JARS), *jars])
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
    return ["java", "-Xmx256m", *opened, "-Djava.net.preferIPv4Stack=true", "-cp", classes]


def _live_datanodes(http_port: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{http_port}/jmx?qry={_STATE}", timeout=5) as answer:
            return int(json.load(answer)["beans"][0]["NumLiveDataNodes"])
    except (OSError, ValueError, LookupError):
        return 0
