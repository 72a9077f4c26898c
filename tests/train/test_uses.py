"""What is read from bytecode about names that are put together, and about codecs."""

from __future__ import annotations

import codecs
import operator
from typing import Any

import pytest

from glowplug.train.fingerprint.code.bytecode import source_digest
from glowplug.train.fingerprint.code.text_codecs import unknown_codec
from glowplug.train.fingerprint.code.uses import uses_of

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


def test_private_names_are_judged_however_they_are_read():
    def reads(s: Any, n: Any) -> Any:
        s._stored = hasattr(n.a, "_asked")
        match n:
            case object(_matched=found):
                return found
        return s._read + s.call()._called + getattr(s, "_got") + len("{0._formatted}".format(s))  # noqa: B009, UP030, UP032

    uses = uses_of(reads.__code__)
    assert uses.judged == {"_asked", "_matched", "_read", "_called", "_got", "_formatted"}
    assert uses.stores == {"_stored"}


def test_a_text_behind_another_begins_no_name():
    behind = (lambda n: f"{n}_dense", lambda n: "_".join(n[1:]), lambda n: n + "_dense", lambda n: n.split("_"))
    first = (lambda n: f"_{n}", lambda n: "_" + n, lambda n: ("_", n), lambda: "_dense")
    assert not any(uses_of(each.__code__).pieces for each in behind)
    assert all(uses_of(each.__code__).pieces for each in first)


def test_what_is_imported_by_a_function_is_known_by_its_name_alone():
    def imports(s: Any) -> Any:
        import math
        from json import decoder, encoder

        found = s.a
        other = found.b
        return [math.pi, decoder.x, encoder.y, found, other, lambda: math.tau]

    chains = {chain for chain in uses_of(imports.__code__).chains if chain[0].startswith("import ")}
    assert chains == {
        ("import math", "pi"),
        ("import math", "tau"),
        ("import json", "decoder", "x"),
        ("import json", "encoder", "y"),
    }


@pytest.mark.parametrize(
    ("code", "asks"),
    [
        (lambda s, n: s is n, True),
        (lambda s: operator.is_(s, s.a), True),
        (lambda s: s is None, False),
        (lambda s: 1 if s is not None else 2, False),
        (lambda s: s is not True, False),
        (lambda s: s == 1, False),
    ],
)
def test_whether_identities_are_asked_for(code: Any, asks: bool):
    assert uses_of(code.__code__).asks_identity == asks


MAKES_NUMBERS = {
    "of a slice": lambda s: int(str(s)[-5:-1], 16),
    "of a slice of an argument": lambda s: float(s[2:]),
    "with a base": lambda s: int(s, 16),
    "of a part": lambda s: int(s.split("_")[1]),
    "of a formatted text": lambda s: float(f"{s}"),
    "of letters": lambda s: sum(map(ord, s)),
    "beside a text": lambda s: int(str(s)[-4]),
}
MAKES_NONE = {
    "of a size": lambda s: int(s.shape[0]),
    "of several sizes": lambda s: int(max(s.shape[1:])),
    "of a product": lambda s: int(s.scale * 2),
    "of an entry": lambda s: float(s.get("a", 1.0)),
    "a class": lambda s: isinstance(s, (int, float)),
    "beside the name of a type": lambda s: (str(s.dtype), int(s)),
}


@pytest.mark.parametrize("name", {**MAKES_NUMBERS, **MAKES_NONE})
def test_numbers_that_are_made_of_texts(name: str):
    code = {**MAKES_NUMBERS, **MAKES_NONE}[name].__code__
    assert uses_of(code).weighs_texts == (name in MAKES_NUMBERS)


def test_texts_of_objects():
    writes = (
        lambda s: f"{s}",
        lambda s: "%s" % s,  # noqa: UP031
        lambda s: str(s[0]),
        lambda s: repr(s.a),
        lambda s: "{}".format(s[0]),  # noqa: UP032
    )
    plain = (lambda s: f"{s.name}", lambda s: str(s.a.dtype), lambda s: s + "a")
    assert all(uses_of(each.__code__).tells_texts for each in writes)
    assert not any(uses_of(each.__code__).tells_texts for each in plain)
