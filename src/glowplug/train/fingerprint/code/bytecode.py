"""Digests of code objects, whatever file and line they stand in, and of the sources that are there for them."""

from __future__ import annotations

import functools
import hashlib
import inspect
import linecache
import re
import types

from glowplug.train.fingerprint.errors import NoKeyError

_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, type(...)})  # what a compiler makes
_BEGINS = re.compile(r"^(\s*def\s)|(\s*async\s+def\s)|(.*(?<!\w)lambda(:|\s))|^(\s*@)")  # as `inspect` has it


@functools.lru_cache(maxsize=16384)
def code_digest(code: types.CodeType) -> str:
    """Return a digest of a code object that ignores where it stands."""
    parts: list[str] = [
        code.co_code.hex(),
        repr(code.co_names),
        repr(code.co_varnames),
        repr(code.co_freevars),
        repr(code.co_cellvars),
        repr((code.co_name, getattr(code, "co_qualname", ""))),
        repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)),
        getattr(code, "co_exceptiontable", b"").hex(),
    ]
    for constant in code.co_consts:
        text = code_digest(constant) if isinstance(constant, types.CodeType) else _constant_text(constant)
        parts.append(f"{type(constant).__name__} {text}")
    digest = hashlib.sha256()
    for part in parts:
        payload = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d\0%s" % (len(payload), payload))
    return digest.hexdigest()


def _constant_text(constant: object) -> str:
    if type(constant) is frozenset:
        return repr(sorted(map(_constant_text, constant)))
    if type(constant) is tuple:
        return repr([_constant_text(item) for item in constant])
    if type(constant) not in _PLAIN:
        raise NoKeyError(f"a {type(constant).__qualname__} was put among the constants of code")
    return repr(constant)


def source_digest(code: types.CodeType) -> str:
    """Return a digest of what a converter of sources would find for this code: the file may be another by now.

    It is what `inspect.findsource` finds, which looks for the module first, for a tenth of a second.
    """
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    first = code.co_firstlineno - 1
    while 0 < first < len(lines) and not _BEGINS.match(lines[first]):
        first -= 1
    try:
        text = "".join(inspect.getblock(lines[first:]))
    except (SyntaxError, IndexError) as error:
        text = type(error).__name__
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
