"""Watches a trace, and says what ran in it that the key does not hold.

A key is made from what a walk can see. The witness looks from the other side: Python's own profiler records, in
compiled code, every function that ran and whom it called. Each of them must be accounted for:

- code of the user's own is in the key, by value, and nothing was objected to in it;
- what such code called directly, Python's or compiled, is admitted: `fingerprint.stock.admission`;
- stock code is code of the files on disk, which the key names. What it calls in turn is its own affair.

Anything else refuses the entry by name. So whatever a program does that nobody thought of is traced as usual.
"""

from __future__ import annotations

import _lsprof
import copy
import dis
import random
import re
import sys
import sysconfig
from collections import namedtuple
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

from glowplug.train.fingerprint.code.reader import CodeReader
from glowplug.train.fingerprint.code.text_codecs import unknown_codec
from glowplug.train.fingerprint.code.uses import Uses
from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.fingerprint.stock.admission import admits, admits_described
from glowplug.train.fingerprint.stock.trusted import is_stock_file, root_of

from .outside import reads_outside
from .warned import NOTES_WARNINGS

_CONVERTED = "__autograph_generated_file"  # in the names of files that AutoGraph writes
_OF_DATACLASSES = "__create_fn__.<locals>.__"  # how the methods that `dataclasses` writes are called
# Among installed packages: what setuptools asks, at every import, where a module lies. The modules that are found are
# judged by their own code.
_FINDERS = re.compile(r"_distutils_hack/__init__\.py|__editable___\w+_finder\.py")
_DEFINING = frozenset(
    [
        "BUILD_CONST_KEY_MAP",
        "BUILD_MAP",
        "BUILD_TUPLE",
        "CACHE",
        "COPY_FREE_VARS",
        "EXTENDED_ARG",
        "LOAD_CLOSURE",
        "LOAD_CONST",
        "LOAD_DEREF",
        "LOAD_FAST",
        "MAKE_CELL",
        "MAKE_FUNCTION",
        "NOP",
        "RESUME",
        "RETURN_CONST",
        "RETURN_VALUE",
        "SET_FUNCTION_ATTRIBUTE",
        "STORE_FAST",
        "STORE_NAME",
    ]
)
_CODING = re.compile(r"<method '(en|de)code' of '(str|bytes|bytearray)' objects>")
_WARNING = re.compile(r"<built-in method _warnings\.warn(_explicit)?>")
_DRAW = frozenset({"", "glowplug", "random", "tempfile"})  # "" is a program's own code, which is judged otherwise
_CALLS_FOR_USERS = ("autograph/impl/api.py", ("_call_unconverted", "_fall_back_unconverted"))


class Witness:
    """Records what runs in this thread inside a `with` block, if it is to `watch`."""

    def __init__(self, *, watch: bool = True) -> None:
        self._absent = "" if watch else "it was not asked for"
        self._profiler: Any = None

    def __enter__(self) -> Witness:
        if sys.getprofile() is not None:
            self._absent = "another profiler is at work"
        if self._absent:
            return self
        self._profiler = _lsprof.Profiler(subcalls=True, builtins=True)
        try:
            self._profiler.enable()
        except ValueError as error:
            self._absent, self._profiler = str(error), None
        return self

    def __exit__(self, *_: object) -> None:
        if self._profiler is not None:
            self._profiler.disable()

    def check(self, code: CodeReader, generated: frozenset[CodeType], *, draws: bool = False) -> None:
        """Raise `NoKeyError` with the name of the first thing that ran and is not accounted for.

        `generated` is stock code that no file holds, as a survey found it after the trace. `draws` says whether random
        numbers of Python's or numpy's may have been drawn, since layers were built on the way.
        """
        if self._profiler is None:
            raise NoKeyError(f"what runs while it is traced could not be watched ({self._absent})")
        ran: list[Uses] = []
        for entry in self._profiler.getstats():
            if not isinstance(entry.code, str):
                called = [each.code for each in entry.calls or ()]
                _check_warnings(entry.code, called)
                ran += _check_entry(entry.code, called, code, generated)
                outside = reads_outside(entry.code, called, _module_of)
                if outside:
                    raise NoKeyError(f"{_place(entry.code)} calls {outside} while it is traced")
                if not draws:
                    _check_draws(entry.code, called)
        if any(each.tells_texts for each in ran) and any(each.weighs_texts for each in ran):
            raise NoKeyError("a text is written of an object, maybe with its address, and a number is made of a text")


def _check_entry(
    ran: CodeType, called: Iterable[CodeType | str], code: CodeReader, generated: frozenset[CodeType]
) -> list[Uses]:
    """Raise `NoKeyError` for what is not accounted for; return what code of the program's own reads."""
    uses: list[Uses] = []
    if ran in code.hashed:
        uses = [_check_hashed(ran, code)]
    elif _CONVERTED in ran.co_filename:
        uses = _check_converted(ran, code)
    elif ran.co_filename == "<string>" and _name(ran).startswith(_OF_DATACLASSES):
        pass  # it hands values on; what it calls is judged as if the user had written it
    elif _is_stock(ran, generated):
        given = [each for each in code.hashed if ran is copy.deepcopy.__code__ and each in called]
        if given:
            raise NoKeyError(f"{_place(given[0])} is given a table of addresses, for copies")
        if not (ran.co_name in _CALLS_FOR_USERS[1] and ran.co_filename.endswith(_CALLS_FOR_USERS[0])):
            return uses
    else:
        raise NoKeyError(f"{_place(ran)} ran while it was traced, and no key holds it")
    for each in called:
        if isinstance(each, str) and _CODING.match(each):
            _check_codecs(ran, code)
        refused = _refused(each, code)
        if refused:
            raise NoKeyError(f"{_place(ran)} calls {refused}, which is not known to be a function of its arguments")
    return uses


def _check_draws(ran: CodeType, called: Iterable[CodeType | str]) -> None:
    """Refuse what stock code draws itself, as for a seed that was not given. The standard library may draw for names of
    files; Glowplug reads and restores the state of generators.
    """
    for each in called:
        if isinstance(each, str):
            drawn = "_random.Random" in each or "numpy.random" in each
        else:
            drawn = each.co_filename == random.__file__
        if drawn and root_of(_module_of(ran.co_filename)) not in _DRAW:
            raise NoKeyError(f"{_place(ran)} draws a random number while it is traced")


def _check_warnings(ran: CodeType, called: Iterable[CodeType | str]) -> None:
    """Refuse warnings that were not noted: of code that holds a function to warn with as its own."""
    if ran is not NOTES_WARNINGS and any(isinstance(each, str) and _WARNING.match(each) for each in called):
        raise NoKeyError(f"{_place(ran)} warns while it is traced")


def _check_hashed(ran: CodeType, code: CodeReader) -> Uses:
    if ran in code.objections:
        raise NoKeyError(code.objections[ran])
    uses = code.hashed[ran]
    if uses.reads_names and not code.reads_names:
        raise NoKeyError(f"{_place(ran)} reads names that the key leaves out")
    if uses.reads_initializers and not code.reads_initializers:
        raise NoKeyError(f"{_place(ran)} reads an initializer that the key leaves out")
    return uses


def _check_codecs(ran: CodeType, code: CodeReader) -> None:
    """Texts may be encoded only with codecs of Python's own. AutoGraph calls for any code that it has converted."""
    uses = [code.hashed[ran]] if ran in code.hashed else list(code.hashed.values())
    codec = unknown_codec(name for each in uses for name in each.codecs)
    if codec is not None:
        raise NoKeyError(f"{_place(ran)} encodes or decodes with {codec!r}, which is not known to be Python's own")


def _check_converted(ran: CodeType, code: CodeReader) -> list[Uses]:
    """AutoGraph rewrites a function and calls it `tf__` and its name: the original must be in the key."""
    if not ran.co_name.startswith("tf__"):
        return []
    name = ran.co_name.removeprefix("tf__")
    origins = [each for each in code.hashed if each.co_name == name or (name == "lam" and each.co_name == "<lambda>")]
    if not origins:
        raise NoKeyError(f"{name} ran while it was traced, converted by AutoGraph, and no key holds it")
    return [_check_hashed(origin, code) for origin in origins]


def _refused(called: CodeType | str, code: CodeReader) -> str:
    """Return the name of what must not be called by code of the user's own, or nothing."""
    if isinstance(called, str):
        return "" if admits_described(called) else called.strip("<>")
    frozen = re.fullmatch(r"<frozen (?!importlib)([\w.]+)>", called.co_filename)  # part of the interpreter: `os`, `abc`
    if called in code.hashed or _CONVERTED in called.co_filename:
        return ""  # judged by its own entry
    if called.co_filename.startswith("<") and not frozen:
        return ""
    module = frozen[1] if frozen else _module_of(called.co_filename)
    return "" if not module or admits(module, _name(called)) else f"{module}.{_name(called)}"


def _is_stock(code: CodeType, generated: frozenset[CodeType]) -> bool:
    if not code.co_filename.startswith("<"):
        return is_stock_file(code.co_filename) or _is_finder(code.co_filename)
    known = code.co_filename.startswith(("<frozen ", "<__array_function__")) or code in generated
    return known or _makes_a_named_tuple(code) or _only_defines(code)


@lru_cache(maxsize=4096)
def _is_finder(filename: str) -> bool:
    folders = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    path = Path(filename)
    return any(folder in path.parents and _FINDERS.fullmatch(path.relative_to(folder).as_posix()) for folder in folders)


def _makes_a_named_tuple(code: CodeType) -> bool:
    fields = code.co_varnames[1:]
    if code.co_names != ("_tuple_new",) or not all(each.isidentifier() for each in fields):
        return False
    made: Any = namedtuple("made", fields, rename=True)  # type: ignore[misc]
    return bool(made.__new__.__code__ == code)


@lru_cache(maxsize=4096)
def _only_defines(code: CodeType) -> bool:
    """Whether code makes functions of what it is given, as `namedtuple` and `dataclass` do, and neither calls nor reads
    anything. What it makes is judged when it runs.
    """
    return all(each.opname in _DEFINING for each in dis.get_instructions(code))


def _name(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def _place(code: CodeType) -> str:
    return f"{_name(code)} ({Path(code.co_filename).name}:{code.co_firstlineno})"


@lru_cache(maxsize=4096)
def _module_of(filename: str) -> str:
    """Return the name of the module in a file of a stock package or the standard library, nothing for other files."""
    if not is_stock_file(filename):
        return ""
    path = Path(filename)
    for folder in sorted(_roots(), key=lambda each: -len(each.parts)):
        if folder in path.parents:
            parts = path.relative_to(folder).with_suffix("").parts
            return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return path.stem


@lru_cache(maxsize=1)
def _roots() -> tuple[Path, ...]:
    import keras
    import tensorflow as tf

    import glowplug

    packages = {Path(str(each.__file__)).parents[1] for each in (glowplug, keras)} | {Path(str(tf.__file__)).parents[1]}
    standard = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    return tuple(packages | standard)
