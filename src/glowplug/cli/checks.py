"""What `doctor` looks at: one function a subject, each returning findings and changing nothing."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from glowplug.core.clock import human_bytes, human_duration, now_ns
from glowplug.core.errors import GlowplugError

from .extras import all_extras, installed_version

Status = Literal["ok", "note", "warning", "broken"]

_FLAVOURS = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-cpu-aws",
    "tensorflow-intel",
    "tensorflow-rocm",
    "tf-nightly",
)
_RELEASES = ((2, 16), (2, 22))  # of TensorFlow
_PYTHONS = ((3, 11), (3, 13))
_COMPILED = ("tensorflow", "keras", "numpy", "glowplug")
_OPTIONAL = {
    "keras": ".keras and .h5 models in `pack`",
    "h5py": ".h5 models in `pack`",
    "ml_dtypes": "bfloat16, float8 and int4",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `remedy` is what to do where it is not `ok`."""

    subject: str
    status: Status
    text: str
    remedy: str = ""


def all_checks() -> Iterator[Check]:
    """Yield every finding, in the order in which one would fix them."""
    for look in _LOOKS:
        yield from look()


def _python() -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    if _PYTHONS[0] <= sys.version_info[:2] <= _PYTHONS[1]:
        yield Check("Python", "ok", f"{version} at {sys.executable}")
    else:
        yield Check("Python", "warning", f"{version} is untested", "use Python 3.11 to 3.13")


def _tensorflow() -> Iterator[Check]:
    found = {name: version for name in _FLAVOURS if (version := installed_version(name)) is not None}
    listed = ", ".join(f"{name} {version}" for name, version in found.items())
    if len(found) > 1:
        keep = "tensorflow-cpu" if "tensorflow-cpu" in found else next(iter(found))
        yield Check(
            "TensorFlow",
            "warning",
            f"{listed} are both installed and overwrite each other's files",
            f"pip uninstall -y {' '.join(found)} && pip install {keep}=={found[keep]}",
        )
    elif found:
        yield _supported(listed, next(iter(found.values())))
    elif importlib.util.find_spec("tensorflow") is not None:
        yield Check("TensorFlow", "note", "found, without package metadata")


def _supported(listed: str, version: str) -> Check:
    release = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if _RELEASES[0] <= release <= _RELEASES[1]:
        return Check("TensorFlow", "ok", listed)
    oldest, newest = (".".join(map(str, limit)) for limit in _RELEASES)
    return Check(
        "TensorFlow",
        "warning",
        f"{listed} is not supported: Glowplug knows TensorFlow {oldest} to {newest}",
        f"pip install 'tensorflow-cpu>={oldest},<{_RELEASES[1][0]}.{_RELEASES[1][1] + 1}'",
    )


def _library() -> Iterator[Check]:
    from glowplug.runtime import library, symbols

    if not library.is_installed() and installed_version("ai-edge-litert") is not None:
        yield Check(
            "C library",
            "note",
            "TensorFlow is not installed: litert bundles and .tflite models work, everything else needs it",
            "pip install 'glowplug[cpu]'",
        )
        return
    try:
        began = now_ns()
        opened = library.open_library()
    except GlowplugError as error:
        what = error.what if error.seen is None else f"{error.what}: {error.seen}"
        yield Check("C library", "broken", what, error.remedy)
        return
    took = human_duration(now_ns() - began)
    yield Check("C library", "ok", f"TensorFlow {opened.version} opens in {took}, at {opened.directory}")
    yield Check("C functions", "ok", f"all {len(symbols.PROTOTYPES)} that Glowplug calls are there")
    yield _page_cache(sum(path.stat().st_size for path in opened.directory.glob("libtensorflow_*")))


def _processor() -> Iterator[Check]:
    from glowplug.runtime import amx
    from glowplug.runtime.fingerprint import cpu_features

    yield Check("processor", "ok", f"{os.cpu_count()} logical CPUs; {' '.join(cpu_features())}")
    if amx.needs_cure():
        yield Check(
            "AMX",
            "broken",
            "the processor announces it, and TensorFlow dies of it on bfloat16 (SIGILL)",
            f"export {'='.join(amx.CURE)}",
        )
    elif amx.answer() == "traps":
        left = f"{amx.CURE[0]}={os.environ[amx.CURE[0]]}"
        yield Check(
            "AMX", "note", f"the processor announces it, and TensorFlow would die of it; {left} keeps it from that"
        )
    if os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0":
        yield Check(
            "oneDNN",
            "note",
            "switched off by TF_ENABLE_ONEDNN_OPTS=0",
            "unset it unless you need bit-exact results",
        )


def _gpus() -> Iterator[Check]:
    nvidia = sorted(Path("/dev").glob("nvidia[0-9]*"))
    others = [path for path in (Path("/dev/kfd"),) if path.exists()]
    if nvidia or others:
        count = len(nvidia) + len(others)
        yield Check("GPUs", "note", f"{count} seen; bundles run on the CPU, so they are not used")
    else:
        yield Check("GPUs", "ok", "none seen; bundles run on the CPU")


def _bytecode() -> Iterator[Check]:
    for package in _COMPILED:
        spec = importlib.util.find_spec(package)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            present, missing = _count_bytecode(Path(location))
            if missing > present // 50:  # a few files of a package are never imported and may not compile
                yield Check(
                    "bytecode",
                    "warning",
                    f"{missing} of {present + missing} modules of {package} lack it and are compiled at each import",
                    f"{sys.executable} -m compileall -q {location}",
                )
            else:
                yield Check("bytecode", "ok", f"{package}: {present} of {present + missing} modules compiled")


def _count_bytecode(directory: Path) -> tuple[int, int]:
    present = missing = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            if name.endswith(".py"):
                compiled = importlib.util.cache_from_source(os.path.join(folder, name))  # noqa: PTH118 - thousands
                exists = os.path.exists(compiled)  # noqa: PTH110 - as above
                present, missing = present + exists, missing + (not exists)
    return present, missing


def _page_cache(library_bytes: int) -> Check:
    room = _memory_limit()
    size = human_bytes(library_bytes)
    if room is None:
        return Check("page cache", "note", f"the libraries are {size}; this system does not tell its memory")
    if room < 2 * library_bytes:
        return Check(
            "page cache",
            "warning",
            f"the libraries are {size} and this process may use {human_bytes(room)}: starts will read from disk",
            "give the machine or container more memory",
        )
    return Check("page cache", "ok", f"the libraries are {size}; {human_bytes(room)} of memory can keep them")


def _memory_limit() -> int | None:
    """Return the memory this process may use: the machine's, or its control group's where that is less."""
    try:
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    limit = next(int(line.split()[1]) * 1024 for line in meminfo.splitlines() if line.startswith("MemTotal:"))
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            limit = min(limit, int(text))
    return limit


def _state_directory() -> Iterator[Check]:
    base = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    directory = Path(base) / "glowplug"
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        yield Check("state directory", "ok", f"{directory} can be written")
    else:
        yield Check(
            "state directory",
            "broken",
            f"{directory} cannot be written, so `pack` cannot keep the key that says which bundles are yours",
            "set XDG_STATE_HOME to a directory you can write",
        )


def _optional_packages() -> Iterator[Check]:
    for name, purpose in _OPTIONAL.items():
        version = installed_version(name)
        if version is not None:
            yield Check("optional", "ok", f"{name} {version}: {purpose}")
        else:
            yield Check("optional", "note", f"{name} is not installed: {purpose}", f"pip install {name}")


def _extras() -> Iterator[Check]:
    for extra in all_extras():
        if not extra.missing:
            listed = ", ".join(f"{name} {version}" for name, version in extra.packages.items())
            yield Check("extra", "ok", f"{extra.name}: {extra.purpose} ({listed})")
        else:
            text = f"{extra.name}: {extra.purpose}; not installed: {', '.join(extra.missing)}"
            yield Check("extra", "note", text, f"pip install 'glowplug[{extra.name}]'")


_LOOKS: tuple[Callable[[], Iterator[Check]], ...] = (
    _python,
    _tensorflow,
    _library,
    _processor,
    _gpus,
    _bytecode,
    _state_directory,
    _optional_packages,
    _extras,
)
