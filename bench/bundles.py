"""Bundles of the reference models, kept in the cache for one state of the source tree: another state packs anew."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from functools import cache
from pathlib import Path

import machine
import models

SOURCE = Path(__file__).parents[1] / "src" / "glowplug"
CACHE = machine.CACHE / "bundles"


def bundle(name: str, engine: str = "auto") -> Path:
    """Return the bundle of a reference model: for the engine that is chosen, or for one that is named."""
    path = directory() / (f"{name}.glow" if engine == "auto" else f"{name}-{engine}.glow")
    if not path.exists():
        source = models.saved_model(name)
        print(f"packing {name} ...", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "glowplug", "pack", source, "-o", path, "--engine", engine]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


@cache
def directory() -> Path:
    """Return the folder for the bundles of this state of what decides a bundle's bytes."""
    digest = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*.py")):
        if path.parent.name != "cli":
            digest.update(path.read_bytes())
    return CACHE / digest.hexdigest()[:12]
