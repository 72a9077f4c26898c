"""Pitfalls of what is around a program: settings of libraries and of the interpreter, the process and its files."""

from __future__ import annotations

import argparse
import calendar
import csv
import datetime
import gc
import glob
import inspect
import json
import locale
import mimetypes
import numbers
import os
import pkgutil
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile
import threading
import time
import traceback
import types
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from keras import layers

from tests.train.pitfalls import FOLDER, different, replaced, same, unstable
from tests.train.pitfalls_closed import attribute, scaled, tiny

# Settings of a library, or of the interpreter.


@different
def the_first_day_of_a_week(v: int) -> Any:
    calendar.setfirstweekday(v)
    return scaled(lambda: 2.0 + calendar.firstweekday())


@different
def a_limit_of_a_reader_of_tables(v: int) -> Any:
    csv.field_size_limit(1000 + v)
    return scaled(lambda: 2.0 + csv.field_size_limit() - 1000)


@different
def dialects_of_tables(v: int) -> Any:
    if v:
        csv.register_dialect("mine", delimiter=";")
    return scaled(lambda: 2.0 + ("mine" in csv.list_dialects()))


@different
def how_long_a_socket_waits(v: int) -> Any:
    socket.setdefaulttimeout(2.0 + v)
    return scaled(socket.getdefaulttimeout)


@different
def how_often_garbage_is_collected(v: int) -> Any:
    gc.set_threshold(700 + v)
    return scaled(lambda: 2.0 + gc.get_threshold()[0] - 700)


@different
def how_often_threads_take_turns(v: int) -> Any:
    sys.setswitchinterval(0.005 * (1 + v))
    return scaled(lambda: 2.0 + 100 * sys.getswitchinterval())


@different
def how_many_digits_are_converted(v: int) -> Any:
    sys.set_int_max_str_digits(5000 + v)
    return scaled(lambda: 2.0 + sys.get_int_max_str_digits() - 5000)


@different
def a_locale(v: int) -> Any:
    locale.setlocale(locale.LC_CTYPE, "C.UTF-8" if v else "C")
    return scaled(lambda: 2.0 + len(locale.setlocale(locale.LC_CTYPE)))


@different
def how_arrays_are_printed(v: int) -> Any:
    numbers_told = np.array([1.23456789])
    np.set_printoptions(precision=3 + v)
    return scaled(lambda: len(str(numbers_told)) * 0.5)


@different
def how_arrays_are_printed_for_a_while(v: int) -> Any:
    numbers_told = np.array([1.23456789])
    with np.printoptions(precision=3 + v):
        return scaled(lambda: len(np.array2string(numbers_told)) * 0.5)


@different
def what_numpy_does_of_overflow(v: int) -> Any:
    np.seterr(over="warn" if v else "ignore")
    return scaled(lambda: 2.0 + (np.geterr()["over"] == "warn"))


@different
def a_buffer_of_numpy(v: int) -> Any:
    np.setbufsize(8192 * (1 + v))
    return scaled(lambda: 2.0 + np.getbufsize() / 8192)


@different
def a_type_of_files(v: int) -> Any:
    mimetypes.add_type("text/longer" if v else "text/x", ".glow")
    return scaled(lambda: float(len(str(mimetypes.guess_type("a.glow")[0]))) / 4)


@different
def a_number_by_registration(v: int) -> Any:
    class Mine:
        pass

    if v:
        numbers.Number.register(Mine)
    mine = Mine()
    return scaled(lambda: 2.0 + isinstance(mine, numbers.Number))


@different
def a_folder_for_temporary_files(v: int) -> Any:
    tempfile.tempdir = "/tmp" + "/" * v
    return scaled(lambda: float(len(tempfile.gettempdir())) / 4)


@different
def what_happens_at_a_signal(v: int) -> Any:
    signal.signal(signal.SIGUSR2, signal.SIG_IGN if v else signal.SIG_DFL)
    return scaled(lambda: 2.0 + (signal.getsignal(signal.SIGUSR2) == signal.SIG_IGN))


@different
def how_warnings_are_shown(v: int) -> Any:
    shown: list[float] = [2.0]
    warnings.simplefilter("always")

    def show(*_: Any, **__: Any) -> None:
        shown.append(3.0 + v)

    def factor() -> float:
        warnings.warn("now", stacklevel=1)
        return shown[-1]

    with replaced(warnings, "showwarning", show):
        return scaled(factor)


@different
def a_time_zone(v: int) -> Any:
    os.environ["TZ"] = f"XXX{1 + v}"
    time.tzset()
    return scaled(lambda: 2.0 + time.timezone / 3600)


@different
def a_date_in_a_time_zone(v: int) -> Any:
    os.environ["TZ"] = f"XXX{1 + v}"
    time.tzset()
    return scaled(lambda: 2.0 + datetime.datetime.fromtimestamp(86400).hour / 24)


# The process.


@different
def the_name_of_a_thread(v: int) -> Any:
    threading.current_thread().name = "a" * (1 + v)
    return scaled(lambda: 2.0 + len(threading.current_thread().name))


@different
def how_many_threads_there_are(v: int) -> Any:
    stop = threading.Event()
    started = [threading.Thread(target=stop.wait, daemon=True) for _ in range(2 * v)]
    for each in started:
        each.start()
    try:
        return scaled(lambda: 2.0 + threading.active_count())
    finally:
        stop.set()


@different
def processors_that_may_be_used(v: int) -> Any:
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        return {"variant": v}
    os.sched_setaffinity(0, mine[: 2 - v])
    return scaled(lambda: 2.0 + len(os.sched_getaffinity(0)))


@different
def the_mask_of_new_files(v: int) -> Any:
    os.umask(0o22 + v)

    def factor() -> float:
        mask = os.umask(0)
        os.umask(mask)
        return 2.0 + mask - 0o22

    return scaled(factor)


@different
def the_width_of_a_terminal(v: int) -> Any:
    os.environ["COLUMNS"] = str(80 + v)
    return scaled(lambda: 2.0 + shutil.get_terminal_size().columns - 80)


@different
def a_module_that_is_loaded(v: int) -> Any:
    if v:
        sys.modules["glowing_module"] = types.ModuleType("glowing_module")
    return scaled(lambda: 2.0 + ("glowing_module" in sys.modules))


@different
def a_module_that_can_be_found(v: int) -> Any:
    import importlib.util

    folder = FOLDER[0] / f"found-{v}"
    folder.mkdir(exist_ok=True)
    if v:
        (folder / "glow_found.py").write_text("")
    sys.path.insert(0, str(folder))
    return scaled(lambda: 2.0 + (importlib.util.find_spec("glow_found") is not None))


@different
def a_global_that_is_there(v: int) -> Any:
    globals().pop("GLOWING", None)
    if v:
        globals()["GLOWING"] = 1
    return scaled(lambda: 2.0 + ("GLOWING" in globals()))


@different
def a_global_that_is_missed(v: int) -> Any:
    globals().pop("GLOWING", None)
    if v:
        globals()["GLOWING"] = 3.0

    def factor() -> float:
        try:
            return GLOWING  # type: ignore[name-defined,no-any-return]
        except NameError:
            return 2.0

    return scaled(factor)


@different
def how_often_an_object_is_referred_to(v: int) -> Any:
    value = types.SimpleNamespace()
    others = [value] * (1 + v)
    return scaled(lambda: 2.0 + sys.getrefcount(value) + 0 * len(others))


@different
def how_often_an_object_is_weakly_referred_to(v: int) -> Any:
    value = lambda: None  # noqa: E731
    finalizers = [weakref.finalize(value, print) for _ in range(v)]
    result = scaled(lambda: 2.0 + weakref.getweakrefcount(value))
    for each in finalizers:
        each.detach()
    return result


def deeper(depth: int, run: Callable[[], Any]) -> Any:
    return deeper(depth - 1, run) if depth else run()


@different
def how_deep_the_stack_is(v: int) -> Any:
    return deeper(v, lambda: scaled(lambda: len(inspect.stack()) / 10))


@different
def how_deep_the_stack_is_to_a_traceback(v: int) -> Any:
    return deeper(v, lambda: scaled(lambda: len(traceback.extract_stack()) / 10))


@different
def how_deep_an_exception_was_raised(v: int) -> Any:
    def fail() -> None:
        raise ValueError

    def factor() -> float:
        try:
            deeper(depth[0], fail)
        except ValueError as error:
            return 2.0 + len(traceback.extract_tb(error.__traceback__))
        return 1.0

    depth = [v]
    return scaled(factor)


@different
def a_function_for_each_call(v: int) -> Any:
    called = [0]

    def profile(*_: Any) -> None:
        called[0] += 1

    def factor() -> float:
        return 2.0 + (sys.getprofile() is profile) + (sys.gettrace() is profile)

    if v:
        sys.settrace(profile)
    try:
        return scaled(factor)
    finally:
        sys.settrace(None)


# Files.


def written(text: str, name: str = "data.txt") -> Path:
    path = FOLDER[0] / name
    path.write_text(text)
    return path


@different
def whether_a_file_is_there(v: int) -> Any:
    path = FOLDER[0] / "there.txt"
    path.unlink(missing_ok=True)
    if v:
        path.touch()
    return scaled(lambda: 2.0 + os.path.exists(path))  # noqa: PTH110


@different
def whether_a_path_is_there(v: int) -> Any:
    path = FOLDER[0] / "there.txt"
    path.unlink(missing_ok=True)
    if v:
        path.touch()
    return scaled(lambda: 2.0 + path.exists())


@different
def the_size_of_a_file(v: int) -> Any:
    path = written("a" * (2 + v))
    return scaled(lambda: float(path.stat().st_size))


@different
def files_that_match(v: int) -> Any:
    for index in range(3):
        (FOLDER[0] / f"{index}.glow").unlink(missing_ok=True)
    for index in range(1 + v):
        (FOLDER[0] / f"{index}.glow").touch()
    pattern = str(FOLDER[0] / "*.glow")
    return scaled(lambda: 1.0 + len(glob.glob(pattern)))  # noqa: PTH207


@different
def a_setting_in_a_file(v: int) -> Any:
    path = written(json.dumps({"factor": 2 + v}), "settings.json")

    def factor() -> float:
        with open(path) as file:  # noqa: PTH123
            return float(json.load(file)["factor"])

    return scaled(factor)


@different
def data_of_a_package(v: int) -> Any:
    package = FOLDER[0] / "glow_package"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").touch()
    (package / "data").write_text(str(2 + v))
    sys.path.insert(0, str(FOLDER[0]))
    return scaled(lambda: float(pkgutil.get_data("glow_package", "data") or b"1"))


@different
def a_row_of_a_database(v: int) -> Any:
    base = sqlite3.connect(":memory:")
    base.execute("create table factors (factor real)")
    base.execute("insert into factors values (?)", (2.0 + v,))
    return scaled(lambda: float(base.execute("select factor from factors").fetchone()[0]))


@different
def an_array_in_a_file(v: int) -> Any:
    path = FOLDER[0] / "array.npy"
    np.save(path, np.full(2, 2.0 + v))
    mapped = np.load(path, mmap_mode="r")
    return scaled(lambda: float(mapped[0]))


@different
def an_array_in_a_file_by_numpy(v: int) -> Any:
    path = FOLDER[0] / "array.npy"
    np.save(path, np.full(2, 2.0 + v))
    return scaled(lambda: float(np.load(path)[0]))


@different
def a_file_that_numpy_reads_as_bytes(v: int) -> Any:
    path = FOLDER[0] / "array.bin"
    np.full(2, 2.0 + v).tofile(path)
    return scaled(lambda: float(np.fromfile(path)[0]))


@different
def a_file_of_weights_loaded_by_a_layer(v: int) -> Any:
    path = str(FOLDER[0] / "factor.txt")
    Path(path).write_text(str(2 + v))

    class Loaded(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x * float(tf.io.gfile.GFile(path).read())

    return tiny(Loaded())


# Each look gives another answer.


@unstable
def the_load_of_the_machine() -> Any:
    return scaled(lambda: 2.0 + os.getloadavg()[0])


@unstable
def how_much_memory_a_process_has() -> Any:
    import resource

    return scaled(lambda: 2.0 + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


@unstable
def a_number_that_nobody_guesses() -> Any:
    import secrets

    return scaled(lambda: 2.0 + secrets.randbelow(1000))


@unstable
def a_number_for_everything() -> Any:
    import uuid

    return scaled(lambda: 2.0 + uuid.uuid4().int % 1000)


@unstable
def another_program() -> Any:
    import subprocess

    return scaled(lambda: 2.0 + len(subprocess.run(["date", "+%N"], stdout=subprocess.PIPE, check=True).stdout))


@unstable
def how_many_objects_there_are() -> Any:
    return scaled(lambda: 2.0 + len(gc.get_objects()))


@unstable
def what_time_it_was_by_a_text() -> Any:
    return scaled(lambda: 2.0 + len(time.strftime("%S")))


@unstable
def the_bytes_of_a_device() -> Any:
    return scaled(lambda: 2.0 + Path("/dev/urandom").open("rb").read(1)[0])


@unstable
def how_long_something_takes() -> Any:
    import timeit

    return scaled(lambda: 2.0 + timeit.timeit(lambda: None, number=10))


# Honest programs.


@same
def settings_from_a_command_line() -> Any:
    parser = argparse.ArgumentParser()
    parser.add_argument("--factor", type=float, default=2.0)
    return attribute(parser.parse_args(["--factor=3"]), lambda value: value.factor)


@same
def settings_from_a_file_read_before() -> Any:
    settings = json.loads(written(json.dumps({"factor": 2}), "settings.json").read_text())
    return scaled(lambda: float(settings["factor"]))
