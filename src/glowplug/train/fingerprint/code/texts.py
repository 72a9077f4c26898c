"""Finds code that writes texts of objects, and code that makes numbers of texts.

Python writes the address of an object that has no text of its own. Where nothing but texts is made of it, it does not
reach what is computed. So a trace in which both kinds of code ran is not kept.
"""

from __future__ import annotations

import dis
import itertools
import string
import types

from .constants import IN_BETWEEN

_WRITERS = frozenset({"str", "repr", "ascii", "format"})
_WRITING = frozenset(
    [
        *_WRITERS,
        "__format__",
        "__repr__",
        "__str__",
        "format_map",
        "pformat",
        "safe_substitute",
        "saferepr",
        "substitute",
        "vformat",
    ]
)
_FORMATTING = frozenset({"FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE"})
# What is told of tensors, variables and layers by these names is no object without a text.
_PLAIN_PARTS = frozenset({"dtype", "name", "ndim", "path", "rank", "shape"})
_HASHES = frozenset({"adler32", "blake2b", "blake2s", "crc32", "crc_hqx", "hash", "md5", "sha1", "sha256", "sha512"})
_WEIGHING = _HASHES | {"from_bytes", "fromhex", "literal_eval", "ord", "to_hash_bucket", "to_number", "translate"}
_NUMBERS = frozenset({"int", "float", "complex", "Decimal", "Fraction", "float32", "float64", "int32", "int64"})
_OF_TEXTS = frozenset({"group", "join", "partition", "removeprefix", "removesuffix", "replace", "rpartition", "split"})


def writes_texts(code: types.CodeType) -> bool:
    """Whether code may write the text of any object."""
    found = _instructions(code)
    for before, each in zip([None, *found], found, strict=False):
        constant = before is not None and before.opname == "LOAD_CONST"
        plain = constant or (before is not None and before.argval in _PLAIN_PARTS)
        if each.opname in _FORMATTING and not (plain and not _converts(each)):
            return True
        if each.opname == "BINARY_OP" and each.argrepr in ("%", "%=") and not constant:
            return True
    return _calls_a_writer(found, _WRITING)


def weighs_texts(code: types.CodeType) -> bool:
    """Whether code may make a number of a text."""
    if not _WEIGHING.isdisjoint(code.co_names):
        return True
    if _NUMBERS.isdisjoint(code.co_names):
        return False
    found = _instructions(code)
    of_any = _calls_a_writer(found, _WRITERS)
    for index, each in enumerate(found):
        if type(each.argval) is str and each.argval in _NUMBERS and each.opname.startswith("LOAD_"):
            given = _arguments(found[index:])
            if given is None or (given and (of_any or _makes_a_text(given))):
                return True
    return False


def _instructions(code: types.CodeType) -> list[dis.Instruction]:
    return [each for each in dis.get_instructions(code) if each.opname not in ("CACHE", "EXTENDED_ARG")]


def _calls_a_writer(found: list[dis.Instruction], writers: frozenset[str]) -> bool:
    for index, each in enumerate(found):
        if type(each.argval) is str and each.argval in writers and not _is_of_plain_part(found[index + 1 :]):
            before = found[index - 1] if index and each.argval == "format" else None
            if before is None or before.opname != "LOAD_CONST" or not _asks_for_numbers(before.argval):
                return True
    return False


def _converts(formatting: dis.Instruction) -> bool:
    """Whether a value is made a text before it is formatted as the constant in front says."""
    return formatting.opname == "CONVERT_VALUE" or (
        formatting.opname == "FORMAT_VALUE" and bool((formatting.arg or 0) & 3)
    )


def _asks_for_numbers(pattern: object) -> bool:
    """Whether a pattern says for each of its fields how it is written, which objects without a format refuse."""
    if type(pattern) is not str:
        return False
    try:
        fields = list(string.Formatter().parse(pattern))
    except ValueError:
        return False
    return all(field is None or (how and not conversion) for _, field, how, conversion in fields)


def _is_of_plain_part(after: list[dis.Instruction]) -> bool:
    """Whether what follows the loading of `str` calls it with `a.shape` or the like."""
    given = [each for each in after[:6] if each.opname not in IN_BETWEEN]
    for before, each in itertools.pairwise(given):
        if each.opname.startswith("CALL"):
            return before.opname == "LOAD_ATTR" and before.argval in _PLAIN_PARTS
    return False


def _arguments(found: list[dis.Instruction]) -> list[dis.Instruction] | None:
    """Return what is done between the loading of a class and its call; None where it is given more than a value."""
    depth = 0
    for index, each in enumerate(found):
        depth += dis.stack_effect(each.opcode, each.arg if each.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
        if index and each.opname.startswith("CALL") and depth == 1:
            several = each.opname != "CALL" or each.argval != 1
            return None if several else [each for each in found[1:index] if each.opname not in IN_BETWEEN]
        if index and depth < 1:
            return []  # it is not called here
    return []


def _makes_a_text(given: list[dis.Instruction]) -> bool:
    """Whether the last of some instructions leaves a text: a formatted one, a slice, what a method of texts returns."""
    *earlier, last = given
    if last.opname in ("BUILD_STRING", "BINARY_SLICE") or last.opname.startswith("FORMAT_"):
        return True
    if last.opname == "BINARY_SUBSCR" and earlier and earlier[-1].opname == "BUILD_SLICE":
        return True
    methods = [each.argval for each in given if each.opname in ("LOAD_ATTR", "LOAD_METHOD")]
    return last.opname in ("BINARY_SUBSCR", "CALL") and bool(methods) and methods[-1] in _OF_TEXTS
