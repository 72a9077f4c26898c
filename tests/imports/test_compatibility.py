"""TensorFlow under `glowplug run` is the TensorFlow that it is without: names, kinds, pickles, registries, output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import TARGETS

pytestmark = [pytest.mark.tensorflow, pytest.mark.core]

EXAMPLES = Path(__file__).parents[2] / "examples" / "startup"


@pytest.fixture(scope="module", autouse=True)
def learned(faster):
    """Have the archive and the record made: the tests are about starts that use them."""
    done = faster("--explain", "-c", "import tensorflow, keras")
    assert "wrote an archive" in done.stderr
    assert "recorded" in done.stderr


def both(stock, faster, tmp_path, target, *words):
    documents = []
    for side, run in (("stock", stock), ("faster", faster)):
        # One order of sets on both sides: what is compared here can show them.
        done = run(TARGETS / target, tmp_path / side, *words, variables={"PYTHONHASHSEED": "0"})
        assert done.returncode == 0, done.stderr
        documents.append(json.loads((tmp_path / side).read_text()))
    return documents


def test_every_name_of_the_api_is_there_and_the_same(stock, faster, tmp_path):
    one, other = both(stock, faster, tmp_path, "inventory.py")
    assert len(one) > 10_000
    assert sum(facts[-1] == "pickles to itself" for facts in one.values()) > 5_000
    assert one.keys() == other.keys()
    for name, facts in one.items():
        if facts[-1] == "PicklingError" and other[name][-1] == "pickles to itself":
            # Stock binds some names of tf.compat.v1.compat before a later import replaces the functions behind them.
            assert ".compat.v1." in name
            facts, other[name] = facts[:-1], other[name][:-1]  # noqa: PLW2901
        assert facts == other[name], name


def test_pickles_of_a_stock_start_can_be_read(stock, faster, tmp_path):
    written, unread = tmp_path / "pickles", []
    assert stock(TARGETS / "pickles.py", "write", written).returncode == 0
    for side, run in (("stock", stock), ("faster", faster)):
        done = run(TARGETS / "pickles.py", "read", written, tmp_path / side)
        assert done.returncode == 0, done.stderr
        count, failed = json.loads((tmp_path / side).read_text())
        assert count > 5_000
        unread.append(failed)
    assert unread[0] == unread[1]


def test_modules_that_were_put_off_can_be_imported_first(stock, faster, tmp_path):
    """One in thirty, and the one that imports a package of the name of a page."""
    import_first(stock, faster, tmp_path, "30", "tensorflow.python.distribute.experimental.rpc.rpc_ops")


@pytest.mark.slow
def test_every_module_that_was_put_off_can_be_imported_first(stock, faster, tmp_path):
    import_first(stock, faster, tmp_path, "1")


def import_first(stock, faster, tmp_path, *words):
    loaded, found = tmp_path / "loaded", tmp_path / "found"
    assert stock(TARGETS / "loaded_first.py", "write", loaded).returncode == 0
    done = faster(TARGETS / "loaded_first.py", "read", loaded, found, *words)
    assert done.returncode == 0, done.stderr
    asked, failed = json.loads(found.read_text())
    assert asked > 10
    assert failed == {}


def test_help_shows_the_same(stock, faster, tmp_path):
    """Of one object in twenty."""
    compare_help(*both(stock, faster, tmp_path, "documentation.py", "20"))


@pytest.mark.slow
def test_help_shows_the_same_for_every_name(stock, faster, tmp_path):
    compare_help(*both(stock, faster, tmp_path, "documentation.py"))


def compare_help(one, other):
    assert sum("characters" in shown for shown in one.values()) > 500
    assert {name: (shown, other.get(name)) for name, shown in one.items() if other.get(name) != shown} == {}
    assert one.keys() == other.keys()


def test_everything_is_registered(stock, faster, tmp_path):
    one, other = both(stock, faster, tmp_path, "registries.py")
    assert len(one["gradients"]) > 500
    assert one == other


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("compat.v1", "lite", "distribute"),
        ("distribute", "compat.v2", "train.Example", "nn.RNNCellDeviceWrapper"),
        ("lite", "experimental.numpy", "feature_column", "raw_ops", "tpu", "xla", "mlir", "test", "profiler"),
    ],
    ids=len,
)
def test_what_is_put_off_comes_when_it_is_asked_for(stock, faster, names):
    one, other = stock(TARGETS / "asks.py", *names), faster(TARGETS / "asks.py", *names)
    assert other.returncode == 0, other.stderr
    assert one.stdout == other.stdout


def test_threads_may_ask_at_once(stock, faster):
    one, other = stock(TARGETS / "threads.py"), faster("--no-trace-cache", TARGETS / "threads.py")
    assert one.returncode == 0, one.stderr
    assert (other.stdout, other.stderr) == (one.stdout, one.stderr)


def test_what_is_loaded_late_leaves_no_mark(stock, faster):
    one, other = stock(TARGETS / "late.py"), faster("--no-trace-cache", TARGETS / "late.py")
    assert one.returncode == 0, one.stderr
    assert other.stdout.splitlines() == one.stdout.splitlines()


def test_a_start_says_what_was_applied(faster, tmp_path):
    document = tmp_path / "run.json"
    done = faster(
        "--json-file", document, "-c", "import os, tensorflow, keras; print('GLOWPLUG_EXPLAIN_FILE' in os.environ)"
    )
    lines = json.loads(document.read_text())["run"]
    figures = {name: number for line in lines for name, number in line["figures"].items()}
    assert figures["modules"] > 1000
    assert figures["put_off"] > 10
    assert figures["fetched"] == 0
    assert figures["known_bytes"] > 10_000_000
    assert figures["asked_bytes"] in (0, figures["known_bytes"])  # by what the page cache has
    assert done.stdout == "False\n"


def test_each_part_can_be_switched_off(faster):
    modules = ("tensorflow._api.v2.lite", "glowplug.train")
    code = f"import tensorflow, keras, sys; print(*(one in sys.modules for one in {modules}))"
    flags = ("--no-imports", "--no-prefetch", "--no-trace-cache")
    variables = {"GLOWPLUG_IMPORTS": "0", "GLOWPLUG_PREFETCH": "off", "GLOWPLUG_TRACE_CACHE": "no"}
    for done in (faster("--explain", *flags, "-c", code), faster("--explain", "-c", code, variables=variables)):
        assert done.stdout == "True False\n"
        assert "nothing" in done.stderr
    assert faster("-c", code).stdout == "False True\n"


def test_a_trace_cache_that_fails_does_not_fail_the_program(faster):
    done = faster("-c", "import sys; sys.modules['glowplug.train.switch'] = None; import keras; print('good')")
    assert (done.stdout, done.returncode) == ("good\n", 0)
    assert "glowplug: trace cache: cannot be switched on: ModuleNotFoundError" in done.stderr


def test_a_program_without_tensorflow_does_not_get_it(faster):
    done = faster(
        "--explain", "-c", "import sys; print({'tensorflow', 'keras', 'numpy', 'glowplug.train'} & set(sys.modules))"
    )
    assert done.stdout == "set()\n"
    assert "nothing to do" in done.stderr


def test_an_unknown_release_is_imported_as_usual(faster, environment, tmp_path):
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("value = 'stock'\n")
    (tmp_path / "tensorflow-9.9.0.dist-info").mkdir()
    paths = f"{tmp_path}:{environment['PYTHONPATH']}"
    code = "import gc, tensorflow; print(tensorflow.value, gc.isenabled(), gc.get_freeze_count())"
    done = faster("-c", code, variables={"PYTHONPATH": paths})
    assert (done.stdout, done.returncode) == ("stock True 0\n", 0)
    assert "TensorFlow 9.9 was not verified" in done.stderr


def test_python_is_as_it_was_after_the_import(stock, faster):
    code = (
        "import gc, inspect, sys, typing; before = (typing._type_check, inspect.signature, gc.isenabled())\n"
        "import tensorflow as tf, threading\n"
        "from tensorflow.python.util import tf_decorator, tf_inspect\n"
        "print(before == (typing._type_check, inspect.signature, gc.isenabled()), tf_decorator.inspect is inspect)\n"
        "print(tf_inspect._getfullargspec is inspect.getfullargspec, tf_decorator.make_decorator.__module__)\n"
        "print([one.name for one in threading.enumerate() if 'librar' in one.name])"
    )
    assert faster("-c", code).stdout == stock("-c", code).stdout


def test_the_environment_is_what_the_import_makes_it(stock, faster):
    code = (
        "import os\n"  # whose variables may be there already, where this process has imported TensorFlow
        "[os.environ.pop(name, None) for name in ('TF2_BEHAVIOR', 'HDF5_PLUGIN_PATH')]\n"
        "before = dict(os.environ); import {}; import tensorflow, keras\n"
        "print(sorted(one for one in os.environ.items() if one not in before.items()), before.keys() - {{*os.environ}})"
    )
    for first in ("tensorflow", "keras"):
        one = stock("-c", code.format(first))
        assert "TF2_BEHAVIOR" in one.stdout
        # The trace cache adds flags of XLA, which it says.
        assert faster("--no-trace-cache", "-c", code.format(first)).stdout == one.stdout
    code = (
        "import os; os.environ['HDF5_PLUGIN_PATH'] = 'mine'; import tensorflow; print(os.environ['HDF5_PLUGIN_PATH'])"
    )
    assert faster("-c", code).stdout == stock("-c", code).stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["import_only", "one_trace", "retracing_function", "one_session", "zeros_initializer"])
def test_an_example_prints_the_same(stock, faster, name):
    one, other = stock(EXAMPLES / f"{name}.py"), faster(EXAMPLES / f"{name}.py")
    assert (one.stdout, one.returncode) == (other.stdout, other.returncode), other.stderr
