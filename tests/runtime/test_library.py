"""Finding and opening TensorFlow's C library, and saying clearly why it cannot be done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from glowplug.core import errors
from glowplug.runtime import library, symbols

pytestmark = [pytest.mark.tensorflow, pytest.mark.core]


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )


def test_opens_without_importing_tensorflow_and_without_threads() -> None:
    code = (
        "import os, sys\n"
        "from glowplug.runtime.library import open_library\n"
        "opened = open_library()\n"
        "print(opened.version, 'tensorflow' in sys.modules, 'numpy' in sys.modules, len(os.listdir('/proc/self/task')))"
    )
    done = run(code)
    version, tensorflow, numpy, threads = done.stdout.split()
    assert version.startswith("2.")
    assert (tensorflow, numpy, threads) == ("False", "False", "1")
    assert done.stderr == ""


def test_fork_after_opening_and_run_in_the_child(bundle) -> None:  # type: ignore[no-untyped-def]
    code = (
        "import os, sys\n"
        "os.environ['OPENBLAS_NUM_THREADS'] = '1'\n"
        "import numpy as np, glowplug\n"
        "from glowplug.runtime.library import open_library\n"
        "open_library()\n"
        "assert len(os.listdir('/proc/self/task')) == 1\n"
        "for _ in range(2):\n"
        "    if os.fork() == 0:\n"
        "        y = glowplug.load(sys.argv[1])(np.ones((1, 16), np.float32))\n"
        "        os._exit(0 if y.shape == (1, 3) else 9)\n"
        "print([os.wait()[1] for _ in range(2)])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(bundle("dense"))], capture_output=True, text=True)
    assert done.stdout.strip() == "[0, 0]", done.stderr


def test_other_libraries_are_left_alone() -> None:
    """TensorFlow carries a copy of OpenSSL; the interpreter's own must still be used by what is imported later."""
    plain = run("import ssl; print(ssl.OPENSSL_VERSION)").stdout
    code = (
        "from glowplug.runtime.library import open_library; open_library()\n"
        "import hashlib, ssl, zlib, sqlite3\n"
        "assert hashlib.new('sha256', b'x').hexdigest().startswith('2d711642')\n"
        "ssl.create_default_context()\n"
        "print(ssl.OPENSSL_VERSION)"
    )
    done = run(code)
    assert done.stdout == plain, done.stderr


def test_no_tensorflow_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(errors.LibraryNotFoundError, match=r"glowplug\[cpu\]"):
        library.find_directory()


def test_tensorflow_without_c_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    with pytest.raises(errors.LibraryNotFoundError, match="no C library"):
        library.find_directory()


def test_library_that_cannot_be_opened(tmp_path: Path) -> None:
    for name in library._file_names():
        (tmp_path / name).write_bytes(b"not a library")
    with pytest.raises(errors.LibraryNotFoundError, match="cannot be opened"):
        library._open(tmp_path)


@pytest.mark.parametrize("version", ["2.15.1", "2.23.0", "3.0.0", "1.15.0"])
def test_version_outside_the_range(version: str) -> None:
    class Fake:
        @staticmethod
        def TF_Version() -> bytes:
            return version.encode()

    with pytest.raises(errors.LibraryVersionError, match=version):
        library._version(Fake())  # type: ignore[arg-type]


def test_missing_symbol_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(symbols.PROTOTYPES, "TF_NoSuchThing", (None, []))
    with pytest.raises(errors.SymbolMissingError, match=r"TF_NoSuchThing in TensorFlow 2\."):
        library._open(library.find_directory())


def test_prototypes_match_the_headers() -> None:
    """Every function we call is declared in the wheel's headers, with as many parameters."""
    import re

    headers = library.find_directory() / "include" / "tensorflow" / "c"
    text = "\n".join(path.read_text() for path in headers.glob("*.h"))
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    for name, (_, arguments) in symbols.PROTOTYPES.items():
        declared = re.search(rf"\b{name}\s*\(((?:[^()]|\([^()]*\))*)\)\s*;", text)
        assert declared, name
        flat = re.sub(r"\([^()]*\)\s*\(([^()]*)\)", "callback", declared[1])
        count = 0 if flat.strip() in ("", "void") else flat.count(",") + 1
        assert count == len(arguments), (name, declared[1])


def test_user_log_level_is_kept() -> None:
    done = run("from glowplug.runtime.library import open_library; open_library()", TF_CPP_MIN_LOG_LEVEL="0")
    assert "oneDNN" in done.stderr or done.stderr == ""
    code = (
        "import os; before = dict(os.environ)\n"
        "from glowplug.runtime.library import open_library; open_library()\n"
        "print(dict(os.environ) == before)"
    )
    assert run(code).stdout.strip() == "True"
