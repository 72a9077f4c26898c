"""Takes what looks like a secret out of texts that are kept and shown: command lines, addresses, names of spans.

What a person typed cannot be listed like variables are (`disclosure`), so this looks for what secrets look like: the
value of an option or variable with such a name, the user part of an address, a token in a header, and the keys of a few
well-known services. A masked text is shown in place of each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

MASK = "<masked>"

_SECRET = frozenset(
    (
        "apikey", "auth", "authorization", "bearer", "cookie", "credential", "credentials", "jwt", "passphrase",
        "passwd", "password", "passwords", "pat", "pw", "pwd", "sas", "secret", "secrets", "sig", "signature", "token",
    )
)  # fmt: skip
_KEYS = frozenset(("access", "account", "api", "encryption", "master", "private", "secret", "shared", "signing", "ssh"))
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NAMED = re.compile(r"""(?P<name>[\w.-]*[A-Za-z][\w.-]*)(?P<sign>["'\]]*\s*[=:]\s*["']?)(?P<value>[^\s"'&;,]+)""")
_ADDRESS = re.compile(r"(?P<scheme>\b[A-Za-z][\w+.-]*://)[^/\s@]+@")
_HEADER = re.compile(r"\b(?P<kind>Bearer|Basic|Token)\s+[\w~+/.=-]{6,}", re.IGNORECASE)
_KNOWN = re.compile(
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bhf_\w{20,}"
    r"|\bsk-[\w-]{16,}|\bxox[abprs]-[\w-]{10,}|\bAIza[\w-]{30,}|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*|\bnpm_\w{30,}"
)
_TELLING = ("=", ":", "@", "earer", "asic", "oken", "AKIA", "ASIA", "_", "-", "eyJ", "AIza")


def masked(text: str) -> str:
    """Return a text without what looks like a secret in it."""
    if not any(sign in text for sign in _TELLING):
        return text
    text = _ADDRESS.sub(rf"\g<scheme>{MASK}@", text)
    text = _HEADER.sub(rf"\g<kind> {MASK}", text)
    text = _NAMED.sub(lambda found: _hidden(found) if _names_a_secret(found["name"]) else found[0], text)
    return _KNOWN.sub(MASK, text)


def masked_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command line without what looks like a secret: in a word, or as the value of the option before it."""
    shown: list[str] = []
    names_next = False
    for word in words:
        is_option = word.startswith("-") and len(word) > 1
        if names_next and not is_option:
            shown.append(MASK)
        else:
            shown.append(masked(word))
        names_next = is_option and "=" not in word and _names_a_secret(word)
    return tuple(shown)


def masked_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with every text in it masked, those in lists and mappings too."""
    return {name: _masked_value(value) for name, value in values.items()}


def _masked_value(value: Any) -> Any:
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list | tuple):
        return [_masked_value(one) for one in value]
    return masked_values(value) if isinstance(value, dict) else value


def _hidden(found: re.Match[str]) -> str:
    return found[0] if found["value"].startswith(MASK) else f"{found['name']}{found['sign']}{MASK}"


def _names_a_secret(name: str) -> bool:
    parts = [part.lower() for part in _PARTS.findall(name)]
    if not _SECRET.isdisjoint(parts):
        return True
    return any(first in _KEYS and second in ("key", "keys") for first, second in pairwise(parts))
