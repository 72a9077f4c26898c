"""Reads the constants of code: the texts among them, and those from which a name may be put together."""

from __future__ import annotations

import dis
import re
import string
import types
from collections.abc import Iterator

IN_BETWEEN = frozenset({"CACHE", "EXTENDED_ARG", "PRECALL", "PUSH_NULL", "NOP"})
# Methods of a text that are given a piece of it: nothing begins with that piece afterwards.
_TAKES_APART = frozenset({"join", "split", "rsplit", "startswith", "endswith", "removeprefix", "removesuffix"})


def texts_in(constants: tuple[object, ...]) -> Iterator[str]:
    """Yield the texts among constants, in whatever tuple or set they lie."""
    for each in constants:
        if isinstance(each, str):
            yield each
        elif isinstance(each, (tuple, frozenset)):
            yield from texts_in(tuple(each))


def without_keywords(code: types.CodeType) -> tuple[object, ...]:
    """Return the constants of code but for those that only name the arguments of calls: by these nothing is read."""
    keywords: set[int] = set()
    others: set[int] = set()
    loaded = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "KW_NAMES" and instruction.arg is not None:  # until Python 3.12
            keywords.add(id(code.co_consts[instruction.arg]))
        elif instruction.opname == "CALL_KW" and loaded is not None:
            keywords.add(loaded)
            loaded = None
        elif instruction.opname not in IN_BETWEEN:
            others.add(loaded or 0)
            loaded = id(instruction.argval) if instruction.opname == "LOAD_CONST" else None
    others.add(loaded or 0)
    return tuple(each for each in code.co_consts if id(each) not in keywords - others)


def pieces_of_names(code: types.CodeType, constants: tuple[object, ...]) -> Iterator[str]:
    """Yield those of some constants of code that may be a piece of a name which a key leaves out.

    Such names have two underscores in a row, or begin with one. A piece that stands behind something in a longer text,
    as in `f"{kind}_dense"`, does not begin a name.
    """
    described = code.co_name != "<lambda>" and isinstance((*constants, None)[0], str)
    behind = _texts_behind_others(code)
    for text in texts_in(constants[1 if described else 0 :]):
        if "__" in text or (text.startswith("_") and text not in behind):
            yield text


def _texts_behind_others(code: types.CodeType) -> set[str]:
    found: set[str] = set()
    elsewhere: set[str] = set()
    instructions = [each for each in dis.get_instructions(code) if each.opname not in IN_BETWEEN]
    for before, each, after in zip([None, *instructions], instructions, [*instructions[1:], None], strict=False):
        if type(each.argval) is str and each.opname == "LOAD_CONST":
            joined = after is not None and (after.argval == "join" or after.argrepr in ("+", "+="))
            formatted = before is not None and before.opname.startswith("FORMAT_")
            given = before is not None and before.argval in _TAKES_APART
            (found if joined or formatted or given else elsewhere).add(each.argval)
        elif each.opname.endswith("_CONST"):
            elsewhere.update(texts_in((each.argval,)))
    return found - elsewhere


def given_constants(after: list[dis.Instruction]) -> set[str]:
    """Return the texts that `encode` or `decode` is called with at once; `?` where it is called with anything else."""
    given: set[str] = set()
    for each in after:
        if each.opname in ("CALL", "CALL_KW"):
            return given or {"utf-8"}
        if each.opname == "LOAD_CONST" and type(each.argval) is str:
            given.add(each.argval)
        elif each.opname != "KW_NAMES" and not (each.opname == "LOAD_CONST" and type(each.argval) is tuple):
            break
    return {"?"}


def calls_with_one(code: types.CodeType, loaded: dis.Instruction) -> bool:
    """Whether what this instruction loads is called at once, with one argument: in doubt not."""
    above = 0  # values on the stack above the function
    after = [each for each in dis.get_instructions(code) if each.offset > loaded.offset]
    for each in (each for each in after if each.opname not in IN_BETWEEN or (each.opname == "PUSH_NULL" and above)):
        if each.opname == "CALL":
            if each.argval == above:
                return above == 1
            above -= each.argval + 1
        elif above < 0 or each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            return False
        else:
            above += dis.stack_effect(each.opcode, each.arg if each.opcode >= dis.HAVE_ARGUMENT else None)
    return False


def names_in_a_format(text: str) -> set[str]:
    """Return the attributes that formatting reads: `a` and `b` of `{0.a[1].b}`."""
    try:
        fields = [field for _, field, _, _ in string.Formatter().parse(text) if field]
    except ValueError:
        return set()
    return {name for field in fields for name in re.findall(r"\.(\w+)", field)}
