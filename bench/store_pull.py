"""A pull over loopback S3 beside a plain copy with s3fs and beside dd: store_pull.py [MODEL] [--runs 5]

The bundle is pushed for ours, and lies there as it is for s3fs, which gets its weights in one stream. `dd` writes as
many bytes to the same disk. Each of them is timed until its last byte is written, which is the page cache, and until
all is on the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import bundles
import machine
import storage

PULL = """
import json, os, sys, time
from glowplug.store.pull import pull
began = time.perf_counter()
path = pull(sys.argv[1])
done = time.perf_counter() - began
for one in path.iterdir():
    if one.is_file():
        os.fsync(os.open(one, os.O_RDONLY))
print(json.dumps([done, time.perf_counter() - began]))
"""
S3FS = """
import json, os, sys, time
import s3fs
client = s3fs.S3FileSystem(
    key=os.environ["AWS_ACCESS_KEY_ID"],
    secret=os.environ["AWS_SECRET_ACCESS_KEY"],
    endpoint_url=os.environ["AWS_ENDPOINT_URL"],
)
began = time.perf_counter()
client.get(sys.argv[1], sys.argv[2])
done = time.perf_counter() - began
os.fsync(os.open(sys.argv[2], os.O_RDONLY))
print(json.dumps([done, time.perf_counter() - began]))
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default="encoder")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    machine.prepare()
    bundle = bundles.bundle(args.model, "native")
    size = (bundle / "weights.bin").stat().st_size
    runs: dict[str, list[tuple[float, float]]] = {"pull": [], "s3fs": [], "dd": []}
    with storage.storage() as one:
        storage.glowplug(one.environment(one.cache()), "push", bundle, one.server.url("m/1"))
        storage.upload(one, bundle, "plain")
        for _ in range(args.runs):
            cache = one.cache()
            runs["pull"].append(run(PULL, [one.server.url("m/1")], one.environment(cache)))
            clear(cache.parent)
            target = one.folder / "copy"
            source = f"{storage.seaweedfs.BUCKET}/plain/weights.bin"
            runs["s3fs"].append(run(S3FS, [source, str(target)], one.environment(cache)))
            clear(target)
            runs["dd"].append(dd(target, size))
            clear(target)
            print({side: taken[-1] for side, taken in runs.items()}, flush=True)
    document = {"machine": machine.describe(), "bytes": size, "runs_s": runs}
    for number, until in enumerate(("written", "on_disk")):
        middle = {side: round(median(one[number] for one in taken), 3) for side, taken in runs.items()}
        document[until] = {
            "median_s": middle,
            "times_s3fs": round(middle["s3fs"] / middle["pull"], 2),
            "share_of_dd": round(middle["dd"] / middle["pull"], 2),
        }
        print(until, document[until])
    machine.write_result("store_pull", document, partial=args.model != "encoder")


def run(code: str, arguments: list[str], environment: dict[str, str]) -> tuple[float, float]:
    done = subprocess.run([sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    written, on_disk = json.loads(done.stdout)
    return round(written, 3), round(on_disk, 3)


def dd(target: Path, size: int) -> tuple[float, float]:
    """Write from memory, as the others do: random bytes are made before."""
    source = Path("/dev/shm/glowplug-bench-dd")
    source.write_bytes(os.urandom(1 << 20) * -(-size >> 20))
    try:
        began = time.perf_counter()
        subprocess.run(["dd", f"if={source}", f"of={target}", "bs=4M", "status=none"], check=True)
        written = time.perf_counter() - began
        os.fsync(os.open(target, os.O_RDONLY))
        return round(written, 3), round(time.perf_counter() - began, 3)
    finally:
        source.unlink()


def clear(path: Path) -> None:
    """Remove what was written, after it is on the disk: writing it back must not slow the next down."""
    os.sync()
    shutil.rmtree(path) if path.is_dir() else path.unlink()


if __name__ == "__main__":
    main()
