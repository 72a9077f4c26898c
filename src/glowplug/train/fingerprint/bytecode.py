"""Digests of code objects, whatever file and line they stand in."""

from __future__ import annotations

import functools
import hashlib
import types


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
    if isinstance(constant, frozenset):
        return repr(sorted(map(repr, constant)))
    if isinstance(constant, tuple):
        return repr([_constant_text(item) for item in constant])
    return repr(constant)
