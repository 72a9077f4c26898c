"""Keys and certificates: from flags or TensorFlow Serving's file to a context for connections."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from glowplug.core.disk.regular_files import read_regular
from glowplug.core.errors import UsageError

from .wire.text_config import read_text

_MAX_BYTES = 1 << 20
HANDSHAKE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Material:
    """PEM text. Clients have to show a certificate of `client_ca` where there is one."""

    key: bytes
    certificate: bytes
    client_ca: bytes = b""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where the material is: in `config`, which holds the text itself, or in files of their own."""

    config: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None

    def stamp(self) -> tuple[tuple[int, ...], ...]:
        """Return what changes when a file does."""
        found = list[tuple[int, ...]]()
        for path in (self.config, self.certificate, self.key, self.client_ca):
            try:
                one = path.stat() if path is not None else None
            except OSError:
                one = None
            found.append(() if one is None else (one.st_ino, one.st_size, one.st_mtime_ns))
        return tuple(found)

    def context(self, protocol: str) -> ssl.SSLContext:
        """Return the context of a server that speaks `protocol` (a name of ALPN); raises `UsageError`."""
        material = self._read()
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        made.set_alpn_protocols([protocol])
        made.options |= ssl.OP_NO_RENEGOTIATION
        try:
            with _as_file(material.certificate) as certificate, _as_file(material.key) as key:
                made.load_cert_chain(certificate, key, password=lambda: b"")  # an encrypted key must not ask a terminal
            if material.client_ca:
                made.load_verify_locations(cadata=material.client_ca.decode("ascii", "replace"))
                made.verify_mode = ssl.CERT_REQUIRED
        except (ssl.SSLError, OSError, ValueError) as error:
            raise UsageError("the key and certificates cannot be used", seen=f"{self._named()} ({error})") from error
        return made

    def _named(self) -> str:
        return ", ".join(str(one) for one in (self.config, self.certificate, self.key, self.client_ca) if one)

    def _read(self) -> Material:
        if self.config is not None:
            found = read_text(self.config, "SSLConfig")
            if found.client_verify and not found.custom_ca:
                raise UsageError("client_verify needs a custom_ca", seen=self.config)
            authority = found.custom_ca.encode() if found.client_verify else b""
            return Material(found.server_key.encode(), found.server_cert.encode(), authority)
        return Material(
            *(b"" if one is None else _contents(one) for one in (self.key, self.certificate, self.client_ca))
        )


def _contents(path: Path) -> bytes:
    try:
        return read_regular(path, _MAX_BYTES)
    except OSError as error:
        raise UsageError("cannot read a key or certificate", seen=f"{path} ({error.strerror})") from error


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """OpenSSL takes names of files only: this one is in memory, so that no key is written anywhere."""
    descriptor = os.memfd_create("pem")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
