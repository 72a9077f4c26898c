"""Who may do what: tokens of a file, kept as digests, each with its scopes.

A line of the file is `NAME sha256:DIGEST SCOPE[,SCOPE…]`. The digest is that of the whole token; tokens are long and
random, so a plain one is enough. The file is read again when it changes.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from glowplug.core.disk.regular_files import read_regular
from glowplug.core.errors import GlowplugError, RequestError, UsageError

from .log import Log

Scope = Literal["", "predict", "status", "control"]  # nothing: whoever can connect may ask

SCOPES = frozenset({"predict", "status", "control"})
_LINE = re.compile(r"(?P<name>\S+)\s+sha256:(?P<digest>[0-9a-fA-F]{64})\s+(?P<scopes>[a-z]+(?:,[a-z]+)*)")
_MAX_BYTES = 1 << 20
_BEARER = b"bearer "


class Tokens:
    """The tokens of a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = self._look()
        self._scopes = _read(path)

    def scopes(self, token: bytes) -> frozenset[str] | None:
        """Return what a token is good for, `None` where it is unknown. Takes as long whichever it is."""
        digest = hashlib.sha256(token).digest()
        found = None
        for known, scopes in self._scopes.items():
            if hmac.compare_digest(known, digest):
                found = scopes
        return found

    def refresh(self, log: Log) -> None:
        """Read the file again where it changed; one that cannot be read changes nothing."""
        stamp = self._look()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._scopes = _read(self._path)
        except GlowplugError as error:
            log.event("tokens_kept", error=str(error))
        else:
            log.event("tokens_read", tokens=len(self._scopes))

    def _look(self) -> tuple[int, ...]:
        try:
            found = self._path.stat()
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns


def _read(path: Path) -> Mapping[bytes, frozenset[str]]:
    try:
        text = read_regular(path, _MAX_BYTES).decode(errors="replace")
    except OSError as error:
        raise UsageError("cannot read the tokens", seen=f"{path} ({error.strerror})") from error
    found = dict[bytes, frozenset[str]]()
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()  # noqa: PLW2901 - what counts of it
        if not line:
            continue
        match = _LINE.fullmatch(line)
        scopes = frozenset(match["scopes"].split(",")) if match else frozenset[str]()
        if match is None or not scopes <= SCOPES:
            raise UsageError(
                "a line of the file of tokens is malformed",
                seen=f"{path}:{number}",  # not the line: it may hold a token
                remedy=f"write NAME sha256:DIGEST SCOPES, with scopes of {', '.join(sorted(SCOPES))}",
            )
        digest = bytes.fromhex(match["digest"])
        found[digest] = found.get(digest, frozenset()) | scopes
    return found


class Gate:
    """Lets requests in. Without tokens everything is open but control, which is never open to whoever can connect:
    each proxy on this machine would hand it on."""

    def __init__(self, tokens: Tokens | None) -> None:
        self.tokens = tokens

    def check(self, authorization: bytes, scope: Scope) -> None:
        """Refuse what this `Authorization` field does not allow."""
        if not scope:
            return
        if self.tokens is None:
            if scope == "control":
                raise RequestError(
                    "the configuration cannot be changed over this port",
                    remedy="start the server with --control-socket PATH and call unix:PATH, or with --auth-tokens FILE",
                    code="PERMISSION_DENIED",
                )
            return
        if authorization[: len(_BEARER)].lower() != _BEARER:
            raise RequestError(
                "this request needs a token", remedy="send `Authorization: Bearer TOKEN`", code="UNAUTHENTICATED"
            )
        scopes = self.tokens.scopes(authorization[len(_BEARER) :].strip())
        if scopes is None:
            raise RequestError("this token is not known", code="UNAUTHENTICATED")
        if scope not in scopes:
            raise RequestError(
                f"this token does not have the scope {scope!r}",
                seen=", ".join(sorted(scopes)),
                code="PERMISSION_DENIED",
            )
