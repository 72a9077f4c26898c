"""Kills pushes and pulls at random moments: store_kill.py [--kills 200] [--megabytes 400]

Each round pushes a directory of random bytes and pulls it with several processes at once, into a cold node cache; one
of them, or the push, is killed with SIGKILL at a random moment. Then a push and a pull run to their end. Checked each
time: every byte, no lock left, and, for the pulls, how much was fetched again (through a counting relay).
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import machine
import storage

PUSH = """
import sys
from pathlib import Path
from glowplug.store.push import push
step = 5 << 20
size = Path(sys.argv[1], "weights.bin").stat().st_size
push(Path(sys.argv[1]), sys.argv[2], boundaries={"weights.bin": range(0, size, step)})
"""
PULL = "import sys; from glowplug.store.pull import pull; print(pull(sys.argv[1]))"
PROCESSES = 3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    machine.prepare()
    choose = random.Random(args.seed)
    again, kills = [], 0
    with storage.storage() as one:
        source = one.folder / "source"
        while kills < args.kills:
            if not source.exists() or choose.random() < 0.2:
                write_source(source, args.megabytes << 20, choose.randrange(1 << 30))
            url = one.server.url(f"kill/{kills}")
            if choose.random() < 0.3:
                kills += killed(start(PUSH, [str(source), url], one.environment(one.cache())), choose)
            finish(start(PUSH, [str(source), url], one.environment(one.cache())))
            cache = one.cache()
            environment = one.environment(cache, counted=True, GLOWPLUG_START_JITTER_S="0")
            one.count()
            pulls = [start(PULL, [url], environment) for _ in range(PROCESSES)]
            count = choose.randint(1, PROCESSES)
            met = sum(killed(child, choose) for child in pulls[:count])
            kills += met
            for child in pulls[count:]:
                finish(child)
            path = Path(finish(start(PULL, [url], environment)).strip())
            received = one.count()
            check_same(source, path)
            check_no_locks(cache)
            size = sum(one.stat().st_size for one in source.iterdir())
            again.append((received / size - 1) / max(1, met))
            print(f"{kills} kills, {again[-1]:.1%} fetched again for each", flush=True)
            shutil.rmtree(cache.parent)
    worst = max(again)
    print(
        f"{kills} kills, {len(again)} rounds: all bytes right, no lock left; at most {worst:.1%} fetched again for each"
    )
    document = {"machine": machine.describe(), "kills": kills, "rounds": len(again), "megabytes": args.megabytes}
    document |= {"fetched_again_worst": round(worst, 4), "fetched_again": [round(one, 4) for one in again]}
    machine.write_result("store_kill", document, partial=kills < 200)


def write_source(folder: Path, size: int, seed: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    made = random.Random(seed)
    with (folder / "weights.bin").open("wb") as stream:
        for _ in range(size >> 20):
            stream.write(made.randbytes(1 << 20))
    (folder / "bundle.json").write_text(str(seed))


def start(code: str, arguments: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code, *arguments], env=environment, text=True, **pipes)


def killed(child: subprocess.Popen[str], choose: random.Random) -> bool:
    """Kill a process at a random moment; say whether it was still running."""
    time.sleep(choose.uniform(0.05, 1.5))
    running = child.poll() is None
    if running:
        os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    return running


def finish(child: subprocess.Popen[str]) -> str:
    out, err = child.communicate(timeout=600)
    if child.returncode:
        sys.exit(f"a process failed:\n{err}")
    return out


def check_same(source: Path, path: Path) -> None:
    done = subprocess.run(["diff", "-r", source, path], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"wrong bytes:\n{done.stdout}")


def check_no_locks(cache: Path) -> None:
    from glowplug.store.node_cache.locks import try_exclusive

    for path in [*(cache / "locks").iterdir(), *(cache / "slots").iterdir(), *cache.glob("entries/*/lease")]:
        lock = try_exclusive(path)
        if lock is None:
            sys.exit(f"a lock was left: {path}")
        lock.release()


if __name__ == "__main__":
    main()
