"""What is read from bytecode about names that are put together, and about codecs."""

from __future__ import annotations

import codecs
import operator
from typing import Any

import pytest

from glowplug.train.fingerprint.bytecode import source_digest
from glowplug.train.fingerprint.text_codecs import unknown_codec
from glowplug.train.fingerprint.uses import uses_of

CONSTANT = {
    "of an argument": lambda s: getattr(s, "a"),  # noqa: B009
    "with a default": lambda s: getattr(s.b.c, "a", None),
    "with a global default": lambda s: getattr(s.b, "a", CONSTANT),
    "no read at all": lambda s: s.a,
}
MADE_UP = {
    "a variable": lambda s, n: getattr(s.a, n),
    "a variable with a default": lambda s, n: getattr(s, n, "x"),
    "a constant for another function": lambda s, n: getattr(n(s, "x"), n),
    "a formatted text": lambda s, n: getattr(s, f"a{n}"),
    "arguments in a tuple": lambda s, n: getattr(*s),
    "getattr as a value": lambda s, n: map(getattr, s, n),
    "a getter": lambda s, n: operator.attrgetter(n)(s),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_names_that_are_constants(name):
    assert not uses_of(CONSTANT[name].__code__).makes_up_names


@pytest.mark.parametrize("name", MADE_UP)
def test_names_that_are_put_together(name):
    assert uses_of(MADE_UP[name].__code__).makes_up_names


def test_the_text_that_describes_a_function_is_no_piece_of_a_name():
    def described() -> str:
        """Like `__init__`."""
        return "a"

    def named() -> str:
        return "__in"

    assert not uses_of(described.__code__).pieces
    assert uses_of(named.__code__).pieces == {"__in"}


@pytest.mark.parametrize(
    ("code", "unknown"),
    [
        (lambda s, n: s.encode(), None),
        (lambda s, n: s.encode("UTF-8", errors="replace"), None),
        (lambda s, n: s.decode("latin-1", "ignore"), None),
        (lambda s, n: s.encode("mine"), "mine"),
        (lambda s, n: s.decode("ascii", "mine"), "mine"),
        (lambda s, n: s.encode(n), "?"),
        (lambda s, n: s.encode(*n), "?"),
    ],
)
def test_codecs_must_be_pythons_own(code: Any, unknown: str | None):
    assert unknown_codec(uses_of(code.__code__).codecs) == unknown


def test_a_handler_of_errors_that_was_replaced():
    stock = codecs.lookup_error("replace")
    codecs.register_error("replace", codecs.lookup_error("ignore"))
    try:
        assert unknown_codec({"replace"}) == "replace"
    finally:
        codecs.register_error("replace", stock)
    assert unknown_codec({"replace"}) is None


def test_the_source_of_code_is_what_the_file_has_now(tmp_path):
    path = tmp_path / "mine.py"
    space: dict[str, Any] = {}
    source = "def mine():\n    return 1\n\n\ndef other():\n    return 2\n"
    path.write_text(source)
    exec(compile(source, str(path), "exec"), space)
    before = [source_digest(space[name].__code__) for name in ("mine", "other")]
    path.write_text(source.replace("return 1", "return 12345"))
    after = [source_digest(space[name].__code__) for name in ("mine", "other")]
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_names_of_arguments_are_not_read():
    def names_them(s: Any) -> Any:
        return s.add(initializer="zeros", __secret=1)

    def uses_them(s: Any) -> Any:
        for each in ("initializer", "__secret"):
            s.add(each)
        return s.add(initializer=1, __secret=2)

    assert not {"initializer", "__secret"} & uses_of(names_them.__code__).texts
    assert {"initializer", "__secret"} <= uses_of(uses_them.__code__).texts
