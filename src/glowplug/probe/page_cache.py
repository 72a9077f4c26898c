"""Make the next start a cold one: drop the kernel's page cache, or evict from it what a start reads."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_DROP = Path("/proc/sys/vm/drop_caches")


@dataclass(frozen=True, slots=True)
class Cooled:
    """What was done: `dropped` (everything), `evicted` (files only) or `warm` (nothing could be done)."""

    state: str
    note: str


def cool(arguments: Iterable[str]) -> Cooled:
    """Empty the page cache as far as this user may."""
    os.sync()  # only clean pages can go
    try:
        _DROP.write_text("3\n")
    except OSError as error:
        reason = error.strerror or str(error)
    else:
        return Cooled("dropped", "the page cache was dropped before the run")
    count, size = _evict(_start_files(arguments))
    if count == 0:
        return Cooled("warm", f"the page cache could not be dropped ({reason}): this run was warm")
    return Cooled(
        "evicted",
        f"the page cache could not be dropped ({reason}); {count} files ({size >> 20} MB) were evicted from it: "
        "pages that other processes map stay",
    )


def _start_files(arguments: Iterable[str]) -> Iterator[Path]:
    """Yield the files that a start is likely to read: the library, installed packages, what the command names."""
    roots = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    roots += [Path(word) for word in arguments if not word.startswith("-") and Path(word).exists()]
    for root in dict.fromkeys(path.resolve() for path in roots):
        if root.is_file():
            yield root
        for directory, _, names in os.walk(root):
            for name in names:
                yield Path(directory, name)


def _evict(paths: Iterable[Path]) -> tuple[int, int]:
    count = size = 0
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            size += os.fstat(descriptor).st_size
            count += 1
        except OSError:
            continue
        finally:
            os.close(descriptor)
    return count, size
