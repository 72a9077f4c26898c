"""`load` needs numpy and two libraries of a TensorFlow wheel: the interpreter need not be one that the wheel is for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import glowplug
from glowplug.runtime.library import find_directory

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.core,
    pytest.mark.skipif(sys.platform != "linux", reason="the libraries have these names on Linux"),
]

CODE = """
import sys
sys.path[:0] = sys.argv[1:3]
import numpy as np
import glowplug
with glowplug.load(sys.argv[3]) as model:
    answer = model(np.load(sys.argv[4]))
assert "tensorflow" not in sys.modules
np.save(sys.argv[5], answer)
"""
LIBRARIES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")


OTHER_PYTHON = "OTHER_PYTHON"  # an interpreter that has numpy; `make test-versions` names one after the other


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Neither the wheel's Python files nor its extension modules, which are made for one interpreter, are there."""
    folder = tmp_path / "packages"
    (folder / "tensorflow").mkdir(parents=True)
    for name in LIBRARIES:
        (folder / "tensorflow" / name).symlink_to(find_directory() / name)
    return folder


def _answer(python: list[str], packages: Path, bundle: Path, x: NDArray[Any]) -> NDArray[Any]:
    np.save(packages / "x.npy", x)
    paths = (Path(glowplug.__file__).parents[1], packages, bundle, packages / "x.npy", packages / "y.npy")
    command = [*python, "-c", CODE, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=packages)
    assert done.returncode == 0, done.stderr
    answer: NDArray[Any] = np.load(packages / "y.npy")
    return answer


def test_the_two_libraries_are_enough(packages: Path, bundle: Callable[[str], Path]) -> None:
    installed = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (installed / name).exists():
            (packages / name).symlink_to(installed / name)
    x = np.random.default_rng(1).normal(size=(2, 16)).astype("float32")
    seen = _answer([sys.executable, "-I", "-S"], packages, bundle("dense"), x)
    with glowplug.load(bundle("dense")) as model:
        np.testing.assert_array_equal(seen, model(x))


@pytest.mark.skipif(OTHER_PYTHON not in os.environ, reason=f"{OTHER_PYTHON} names no interpreter")
def test_another_interpreter_loads_with_them(packages: Path, bundle: Callable[[str], Path]) -> None:
    x = np.random.default_rng(1).normal(size=(2, 16)).astype("float32")
    seen = _answer([str(Path(os.environ[OTHER_PYTHON]).absolute()), "-I"], packages, bundle("dense"), x)
    with glowplug.load(bundle("dense")) as model:
        np.testing.assert_array_equal(seen, model(x))
