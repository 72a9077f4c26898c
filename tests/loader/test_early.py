"""What overlaps at the start of a process, seen from inside fresh ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from glowplug.loader.origin import local_copy, publish


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_call_comes_once_after_the_extensions_and_before_the_rest():
    code = """
import sys
from glowplug.loader.engines.early import import_numpy
seen = []
before = list(sys.meta_path)
import_numpy(lambda: seen.append(set(sys.modules)))
import numpy
assert sys.meta_path == before
late = set(sys.modules) - seen[0]
files = [getattr(sys.modules[name], "__file__", None) or "" for name in late]
print(len(seen), len(late) > 5, [file for file in files if file.endswith(".so")], numpy.ones(2).sum())
"""
    assert run(code) == "1 True [] 2.0"


def test_where_numpy_is_there_already_the_call_comes_at_once():
    code = """
import numpy
from glowplug.loader.engines.early import import_numpy
seen = []
import_numpy(lambda: seen.append(1))
print(seen)
"""
    assert run(code) == "[1]"


def test_a_failing_import_of_numpy_is_told_and_leaves_no_finder():
    code = """
import sys
sys.modules["numpy.version"] = None
from glowplug.loader.engines.early import import_numpy
before, seen = list(sys.meta_path), []
try:
    import_numpy(lambda: seen.append(1))
except ImportError:
    print(sys.meta_path == before, len(seen))
"""
    assert run(code) == "True 0"


@pytest.mark.tensorflow
def test_a_load_that_fails_early_waits_for_the_library(tmp_path):
    (tmp_path / "bundle.json").write_text('{"manifest":{"engine":"native"}}')
    code = f"""
import threading, glowplug
from glowplug.runtime import library
try:
    glowplug.load({str(tmp_path)!r})
except glowplug.GlowplugError:
    print(library.is_open(), threading.active_count())
"""
    assert run(code) == "True 1"


def test_importing_the_loader_does_not_import_numpy():
    assert run("import sys, glowplug.loader.open; print('numpy' in sys.modules)") == "False"


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", ["path", "pinned", "url"])
def test_no_extension_module_is_loaded_while_the_library_is_being_opened(bundle, tmp_path, monkeypatch, kind):
    """It would wait for the library, and keep the interpreter lock. All that a URL needs comes in that time too."""
    where = str(bundle("dense"))
    if kind != "path":
        monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(tmp_path / "node-cache"))
        url = (tmp_path / "storage").as_uri()
        publish(bundle("dense"), url)
        with local_copy(url) as copy:
            where = f"{url}@{copy.digest}" if kind == "pinned" else url
    code = f"""
import sys
import numpy as np
from glowplug.loader.engines import early
then = []
opening = early._open_quietly
early._open_quietly = lambda: (then.append(set(sys.modules)), opening())
import glowplug
model = glowplug.load({where!r})
late = set(sys.modules) - then[0]
files = {{name: getattr(sys.modules[name], "__file__", None) or "" for name in late}}
libraries = sorted(name for name, file in files.items() if file.endswith(".so"))
print(len(late) > 10, libraries, "glowplug.store.pull" in late, len(then))
"""
    assert run(code) == f"True [] {kind != 'path'} 1"


def litert_bundle(folder: Path) -> Path:
    pytest.importorskip("ai_edge_litert")
    from tests import tflites

    tflites.write_bundle(folder / "m.glow", tflites.dense())
    return folder / "m.glow"


def test_litert_is_opened_beside_numpy_and_nothing_waits_for_it(tmp_path: Path) -> None:
    """Of extension modules, only LiteRT's own come once its library is being opened; the thread has ended by then."""
    code = f"""
import sys, threading
from glowplug.loader.engines import early
then = []
real = early.import_numpy
early.import_numpy = lambda start: real(lambda: (then.append(set(sys.modules)), start()))
import glowplug
with glowplug.load({str(litert_bundle(tmp_path))!r}) as model:
    late = set(sys.modules) - then[0]
    files = {{name: getattr(sys.modules[name], "__file__", None) or "" for name in late}}
    libraries = [name for name, file in files.items() if file.endswith(".so") and not name.startswith("ai_edge_litert")]
    maps = open("/proc/self/maps").read()
    print(len(then), libraries, "libpywrap_litert_common" in maps, threading.active_count())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("1 [] True 1\n", "")


def test_a_bundle_of_litert_that_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    bundle = litert_bundle(tmp_path)
    (bundle / "model.tflite").write_bytes(b"short")
    code = f"""
import threading, glowplug
try:
    glowplug.load({str(bundle)!r})
except glowplug.GlowplugError as error:
    print(type(error).__name__, threading.active_count())
"""
    assert run(code) == "FileSizeError 1"


@pytest.mark.parametrize("planted", ["bundle.json", "origin"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path, planted: str) -> None:
    entry = tmp_path / "cache" / "entries" / ("0" * 64)
    (entry / "content").mkdir(parents=True)
    os.mkfifo(entry / "content" / planted if planted == "bundle.json" else entry / planted)
    where = str(entry / "content") if planted == "bundle.json" else (tmp_path / "storage").as_uri()
    code = f"import glowplug; glowplug.load({where!r})"
    environment = {**os.environ, "GLOWPLUG_NODE_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=30)
    assert done.stderr.splitlines()[-1].startswith("glowplug.core.errors.")
