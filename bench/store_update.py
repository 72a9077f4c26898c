"""A new version that changes one part in a hundred of the weights: store_update.py [MODEL]

Whole tensors are changed, the smallest number of them that makes 1 %, and 1 % in one run of bytes. Bytes are counted
by a relay in front of the server: what a push sends, and what a pull gets on a host that has the version before.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import bundles
import machine
import storage


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default="encoder")
    args = parser.parse_args()
    bundle = bundles.bundle(args.model, "native")
    results = {}
    for name, change in (("tensors", change_tensors), ("bytes", change_bytes)):
        with storage.storage() as one:
            cache, changed = one.cache(), one.folder / "changed"
            environment = one.environment(cache, counted=True)
            first = storage.glowplug(environment, "push", bundle, one.server.url("m/1"))
            storage.glowplug(environment, "pull", one.server.url("m/1"))
            shutil.copytree(bundle, changed)
            share = change(changed)
            one.count()
            second = storage.glowplug(environment, "push", changed, one.server.url("m/2"))
            one.count()
            pulled = storage.glowplug(environment, "pull", one.server.url("m/2"))
            received = one.count()
            same = all(
                (Path(pulled["path"]) / path.name).read_bytes() == path.read_bytes()
                for path in changed.iterdir()
                if path.is_file()
            )
        results[name] = {
            "changed_share": round(share, 4),
            "sent_share": round(second["sent_bytes"] / first["bytes"], 4),
            "received_share": round(received / first["bytes"], 4),
        }
        print(name, results[name], flush=True)
        if not same:
            sys.exit("the pulled version is not the changed one")
    machine.write_result("store_update", {"machine": machine.describe(), **results}, partial=args.model != "encoder")


def change_tensors(directory: Path) -> float:
    """Change the tensors in the middle until they are 1 % of the bytes; return their share."""
    from glowplug.bundle.reader import read_manifest

    tensors = read_manifest(directory).tensors
    total = sum(one.nbytes for one in tensors)
    changed = 0
    with (directory / "weights.bin").open("r+b") as stream:
        for one in tensors[len(tensors) // 2 :]:
            if changed >= total / 100:
                break
            flip(stream, one.offset, one.nbytes)
            changed += one.nbytes
    return seal(directory, changed / total)


def change_bytes(directory: Path) -> float:
    """Change one run of 1 % of the bytes; return the share."""
    size = (directory / "weights.bin").stat().st_size
    with (directory / "weights.bin").open("r+b") as stream:
        flip(stream, size // 3, size // 100)
    return seal(directory, 0.01)


def flip(stream, offset: int, size: int) -> None:
    stream.seek(offset)
    data = bytes(byte ^ 1 for byte in stream.read(size))
    stream.seek(offset)
    stream.write(data)


def seal(directory: Path, share: float) -> float:
    """Write the manifest again, which has the digest of the weights."""
    from dataclasses import replace

    from glowplug.bundle import schema
    from glowplug.bundle.reader import read_manifest
    from glowplug.core.disk.digest import sha256_file

    manifest = read_manifest(directory)
    entry = replace(manifest.files["weights.bin"], sha256=sha256_file(directory / "weights.bin"))
    document = schema.dump(replace(manifest, files={**manifest.files, "weights.bin": entry}))
    (directory / "bundle.json").write_bytes(document if isinstance(document, bytes) else document.encode())
    return share


if __name__ == "__main__":
    main()
