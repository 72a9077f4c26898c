"""Models to serve: TensorFlow Serving's own test models, or models like them, and bundles of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.serve.echo_model import save_echo
from tests.serve.server import Server

ROOT = Path(__file__).resolve().parents[2]
CANDIDATES = [parent / "shared" / "models" for parent in (ROOT, *ROOT.parents)]


@pytest.fixture(scope="session")
def shared_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TensorFlow Serving's own where they lie beside the repository; elsewhere models with the same signatures."""
    found = next((path for path in CANDIDATES if path.is_dir()), None)
    if found is None:
        found = tmp_path_factory.mktemp("models")
        command = [sys.executable, "-m", "tests.serve.models", found]
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    return found


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Return the bundle of a SavedModel, packed once in a process of its own."""
    folder = tmp_path_factory.mktemp("packed")
    made: dict[Path, Path] = {}

    def pack(source: Path) -> Path:
        if source not in made:
            target = folder / f"{len(made)}.glow"
            command = [sys.executable, "-m", "glowplug", "pack", "--prefer", "any", source, "-o", target]
            subprocess.run(command, check=True, capture_output=True)
            made[source] = target
        return made[source]

    return pack


@pytest.fixture(scope="session")
def half_plus_two(shared_models: Path, packed: Callable[[Path], Path]) -> Path:
    return packed(shared_models / "saved_model_half_plus_two_cpu" / "00000123")


@pytest.fixture(scope="session")
def server(half_plus_two: Path) -> Iterator[Server]:
    """A server of one small bundle that tests share; whoever changes its state starts another."""
    with Server(f"half={half_plus_two}", "--instances", 2, "--access-log") as started:
        yield started


@pytest.fixture(scope="session")
def echo_server(tmp_path_factory: pytest.TempPathFactory, packed: Callable[[Path], Path]) -> Iterator[Server]:
    """A server of the model that answers what it was given; nobody changes its state."""
    source = tmp_path_factory.mktemp("echo") / "123"
    save_echo(source)
    with Server(f"echo={packed(source)}") as started:
        yield started
