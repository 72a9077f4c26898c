"""Which codecs of texts are Python's own: programs can register others, and nobody can list them."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

# Python looks these up without asking anyone, or asks its own package first.
_CODECS = frozenset(
    {"utf-8", "utf8", "utf_8", "utf-8-sig", "utf-16", "utf-32", "ascii", "us-ascii", "latin-1", "latin1"}
)
_HANDLERS = {
    "strict": codecs.strict_errors,
    "ignore": codecs.ignore_errors,
    "replace": codecs.replace_errors,
    "backslashreplace": codecs.backslashreplace_errors,
    "xmlcharrefreplace": codecs.xmlcharrefreplace_errors,
    "namereplace": codecs.namereplace_errors,
}


def unknown_codec(names: Iterable[str]) -> str | None:
    """Return the first of these names of codecs and of handlers of errors that may stand for something else."""
    for name in sorted(names):
        handler = _HANDLERS.get(name)
        if name.lower() not in _CODECS and (handler is None or codecs.lookup_error(name) is not handler):
            return name
    return None
