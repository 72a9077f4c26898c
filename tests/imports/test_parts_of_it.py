"""Signatures, references, registries, the window and the watcher, each by itself."""

from __future__ import annotations

import decimal
import functools
import gc
import importlib
import inspect
import linecache
import locale
import logging
import os
import pickle
import random
import signal
import socket
import subprocess
import sys
import traceback
import types
import typing
import warnings

import numpy
import pytest

from glowplug.imports import versions
from glowplug.imports.left_out import references, registries, signatures
from glowplug.imports.put_off import deferred
from glowplug.imports.put_off.settings import Settings
from glowplug.imports.watch import Watcher
from glowplug.imports.window import Collector, Window


def plain(a, /, b: int, *rest: str, c=1, d, **more) -> float:
    return 0.0


def annotated(x: typing.List["int"] = None, y=(1, 2)):  # noqa: UP006, UP037, RUF013
    return x, y


def none():
    pass


@functools.wraps(plain)
def wrapping(*args):
    return args


FUNCTIONS = [plain, annotated, none, wrapping, lambda *, k=2: k]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_unread_signature_becomes_an_ordinary_one(function):
    stock = inspect.signature(function)
    for look in (
        lambda one: one.parameters,
        lambda one: one.return_annotation,
        str,
        repr,
        hash,
        lambda one: pickle.dumps(one) and one.parameters,
        lambda one: one.replace(return_annotation=1).return_annotation,
    ):
        unread = signatures.signature(function)
        assert isinstance(unread, inspect.Signature)
        try:
            expected = look(stock)
        except (TypeError, pickle.PicklingError) as error:
            with pytest.raises(type(error)):
                look(unread)
            continue
        assert look(unread) == expected
        assert unread == stock
        assert type(unread) is inspect.Signature


def test_what_is_no_plain_function_is_left_to_inspect():
    assert type(signatures.signature(functools.partial(none))) is inspect.Signature
    with pytest.raises(ValueError, match="no signature"):
        signatures.signature(type)


@pytest.mark.parametrize("function", [*FUNCTIONS, dict.fromkeys, pytest.raises])
def test_argument_specifications_are_equal(function):
    try:
        expected = inspect.getfullargspec(function)
    except TypeError:
        with pytest.raises(TypeError):
            signatures.getfullargspec(function)
        return
    assert signatures.getfullargspec(function) == expected


def test_references_are_shared_and_given_back():
    stock = typing._type_check
    restore = references.share_references()
    try:
        make: typing.Any = typing.TypeVar
        one, other = make("T", "_atypes.Int8", "_atypes.Int16"), make("U", "_atypes.Int8", "x.Y")
    finally:
        restore()
    assert one.__constraints__ == (typing.ForwardRef("_atypes.Int8"), typing.ForwardRef("_atypes.Int16"))
    assert one.__constraints__[0] is other.__constraints__[0]
    assert other.__constraints__[1] == typing.ForwardRef("x.Y")
    assert typing._type_check is stock


def test_a_registry_brings_what_it_awaits():
    asked = []
    registry = registries.AwaitingDict({"here": 1}, {"a": "no.module.a", "b": "no.module.b"}, asked.append)
    assert registry["here"] == 1
    assert "elsewhere" not in registry
    assert asked == []
    assert "a" not in registry
    assert registry.get("a", 5) == 5
    assert asked == ["no.module.a"]
    assert list(registry) == ["here"]
    assert asked == ["no.module.a", "no.module.b"]
    with pytest.raises(KeyError):
        registry["c"]


def test_a_place_of_registration_is_what_stock_keeps_and_its_text_is_read_when_asked_for():
    module = types.ModuleType("registry")
    exec("import traceback\ndef register():\n    return traceback.extract_stack(limit=3)", vars(module))

    def place():
        return module.register()[-2]

    before, undo = place(), registries.in_registry(module)()
    lines = set(linecache.cache)
    after = place()
    assert set(linecache.cache) == lines
    assert (after, after.line, after.name) == (before, before.line, before.name)
    assert after.line == "return module.register()[-2]"
    undo()
    assert module.traceback is traceback


def test_the_collector_pauses_for_the_outermost_import_and_freezes_once():
    script = """if True:
    import gc
    from glowplug.imports.window import Collector, Window
    window = Window((Collector().pause,))
    for _ in range(2):
        window.enter()
        window.enter()
        window.leave()
        assert not gc.isenabled()
        live = [[] for _ in range(1000)]
        window.leave()
        print(gc.isenabled(), gc.get_freeze_count() > 3000, any(one is live for one in gc.get_objects()))
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "True True False\nTrue True True\n", done.stderr


def test_what_a_program_has_made_before_is_not_frozen():
    made = [[] for _ in range(150_000)]
    window = Window((Collector().pause,))
    before = gc.get_freeze_count()
    window.enter()
    window.leave()
    assert gc.get_freeze_count() == before
    assert len(made) == 150_000


def test_a_collector_that_the_program_switched_off_stays_off():
    window = Window((Collector().pause,))
    gc.disable()
    try:
        window.enter()
        window.leave()
        assert not gc.isenabled()
    finally:
        gc.enable()
    before = gc.get_freeze_count()
    window.enter()
    window.leave()
    assert gc.get_freeze_count() == before  # the first import was that one: what is alive by now stays in sight


class Late(Warning):
    pass


def test_settings_are_put_back(monkeypatch):
    monkeypatch.setenv("GLOWPLUG_TEST", "as it was")
    random.seed(3)
    numpy.random.seed(3)
    expected = (random.random(), numpy.random.random())
    random.seed(3)
    numpy.random.seed(3)
    filters = list(warnings.filters)
    before, settings = chosen(), Settings()
    random.random()
    numpy.random.random()
    os.environ.update(GLOWPLUG_TEST="another", GLOWPLUG_TEST_NEW="new")
    locale.setlocale(locale.LC_ALL, "C")
    logging.root.addHandler(logging.NullHandler())
    logging.root.setLevel(logging.CRITICAL)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    decimal.getcontext().prec = 5
    sys.path.append("/nowhere")
    numpy.seterr(all="raise")
    socket.setdefaulttimeout(9)
    sys.excepthook = print
    sys.setrecursionlimit(5000)
    warnings.simplefilter("ignore", ResourceWarning)  # there already, further down
    warnings.simplefilter("ignore", Late)
    changed = settings.differences()
    settings.restore(filters[1:])
    assert {"random", "numpy.random", "environment", "logging", "signals", "decimal", "sys.path", "hooks"} <= {*changed}
    assert (random.random(), numpy.random.random()) == expected
    assert "GLOWPLUG_TEST_NEW" not in os.environ
    assert chosen() == before
    added = [one for one in warnings.filters if one not in filters]
    assert warnings.filters == [filters[0], *added, *filters[1:]]  # the program's one filter came after the module
    assert [one[2] for one in added] == [Late]
    warnings.filters[:] = filters


def chosen():
    return (
        os.environ["GLOWPLUG_TEST"],
        locale.setlocale(locale.LC_ALL),
        list(logging.root.handlers),
        logging.root.level,
        signal.getsignal(signal.SIGUSR1),
        decimal.getcontext().prec,
        list(sys.path),
        numpy.geterr(),
        socket.getdefaulttimeout(),
        sys.excepthook,
        sys.getrecursionlimit(),
    )


def test_filters_that_the_program_has_taken_away_stay_away():
    with warnings.catch_warnings():
        early = list(warnings.filters)
        warnings.resetwarnings()
        settings = Settings()
        warnings.simplefilter("ignore", Late)
        settings.restore(early)
        assert warnings.filters == []


def test_the_watcher_tells_before_and_after(tmp_path, monkeypatch):
    (tmp_path / "glowplug_good.py").write_text("x = 1\n")
    (tmp_path / "glowplug_bad.py").write_text("raise ValueError('as written')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    watcher, seen = Watcher(), []
    watcher.install()
    try:
        for name in ("glowplug_good", "glowplug_bad", "glowplug_missing"):
            watcher.watch(name, before=lambda spec: seen.append(spec.name), after=seen.append)
        good = importlib.import_module("glowplug_good")
        with pytest.raises(ValueError, match="as written"):
            importlib.import_module("glowplug_bad")
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("glowplug_missing")
    finally:
        watcher.remove()
        sys.modules.pop("glowplug_good", None)
    assert seen == ["glowplug_good", good, "glowplug_bad", None]
    assert "exec_module" not in vars(good.__loader__)


@pytest.mark.parametrize(
    ("names", "release"),
    [
        (["tensorflow_cpu-2.21.0.dist-info", "tensorflow_text-2.20.1.dist-info"], "2.21"),
        (["tensorflow-2.16.2.dist-info"], "2.16"),
        (["tensorflow-2.20.0.dist-info", "tensorflow_cpu-2.21.0.dist-info"], ""),
        (["numpy-2.0.0.dist-info"], ""),
    ],
)
def test_the_release_is_read_from_the_metadata(tmp_path, names, release):
    for name in names:
        (tmp_path / name).mkdir()
    assert versions.release_of(str(tmp_path / "tensorflow")) == release
    assert versions.release_of(str(tmp_path / "nowhere" / "tensorflow")) == ""


def test_a_deferred_module_runs_when_it_is_looked_at(tmp_path, monkeypatch):
    (tmp_path / "glowplug_deferred").mkdir()
    (tmp_path / "glowplug_deferred" / "__init__.py").write_text("import glowplug_deferred\nruns = 1\nx = 5\n")
    (tmp_path / "glowplug_deferred" / "part.py").write_text("y = 6\n")
    (tmp_path / "glowplug_failing.py").write_text("raise ValueError('body')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    names = dict.fromkeys(("glowplug_deferred", "glowplug_failing", "glowplug_missing", "glowplug_unproven"), ())
    (tmp_path / "glowplug_unproven.py").write_text("z = 7\n")
    waiting = deferred.Deferrals(names, lambda name: name != "glowplug_unproven", Window())
    end = waiting.put_off()
    try:
        module = importlib.import_module("glowplug_deferred")
        failing = importlib.import_module("glowplug_failing")
        assert "z" in vars(importlib.import_module("glowplug_unproven"))
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("glowplug_missing")
    finally:
        end()
    assert type(module) is deferred.Deferred
    assert module.__file__ == str(tmp_path / "glowplug_deferred" / "__init__.py")
    assert inspect.ismodule(module)
    assert type(module) is deferred.Deferred
    assert importlib.import_module("glowplug_deferred.part").y == 6
    assert type(module) is type(sys)
    assert module.x == 5
    assert type(module.__loader__).__name__ == type(module.__spec__.loader).__name__ == "SourceFileLoader"
    assert importlib.reload(module) is module
    for _ in range(2):
        with pytest.raises(ValueError, match="body"):
            _ = failing.anything
    for name in [*names, "glowplug_deferred.part"]:
        sys.modules.pop(name, None)
