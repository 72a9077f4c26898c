"""Ports and unix sockets, with TLS whose certificates are those that lie on the disk now."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

from glowplug.core.errors import GlowplugError, UsageError

from .addresses import bind, refused
from .log import Log
from .tls import HANDSHAKE_SECONDS, TlsFiles

_BACKLOG = 1024

Factory = Callable[[], asyncio.Protocol]


class Listener:
    """What one protocol listens on. `alpn` is its name in the handshake of TLS."""

    def __init__(self, factory: Factory, log: Log, alpn: str) -> None:
        self._factory, self._log, self._alpn = factory, log, alpn
        self._loop = asyncio.get_running_loop()
        self._servers: list[asyncio.AbstractServer] = []
        self._secured: list[asyncio.Server] = []
        self._tls: TlsFiles | None = None
        self._stamp: object = None

    async def open_port(self, host: str, port: int, tls: TlsFiles | None = None) -> None:
        """Listen on a port of every address of a host."""
        self._tls, self._stamp = tls, tls.stamp() if tls else None
        context = tls.context(self._alpn) if tls else None
        patience = HANDSHAKE_SECONDS if tls else None
        waiting = await bind(host, port, lambda: self._log.event("listening_without_ipv6", host=host, port=port))
        try:
            while waiting:
                server = await self._loop.create_server(
                    self._factory, sock=waiting[0], backlog=_BACKLOG, ssl=context, ssl_handshake_timeout=patience
                )
                (self._secured if tls else self._servers).append(server)
                del waiting[0]
        except OSError as error:  # of two sockets that may share a port, one can listen
            raise refused(host, port, error) from error
        finally:
            for one in waiting:
                one.close()

    async def open_socket(self, path: str, *, private: bool = False) -> None:
        """Listen on a unix socket; a private one is for processes of this user alone."""
        _take_socket(path, self._log)
        made = socket.socket(socket.AF_UNIX)
        made.setblocking(False)
        before = os.umask(0o177) if private else None
        try:
            made.bind(path)
        except OSError as error:
            made.close()
            raise UsageError("cannot listen on this socket", seen=f"{path} ({error})") from error
        finally:
            if before is not None:
                os.umask(before)
        self._servers.append(await self._loop.create_unix_server(self._factory, sock=made, backlog=_BACKLOG))

    async def refresh(self) -> None:
        """Give new connections the certificates of files that changed; ones that cannot be used change nothing.

        The sockets that listen stay: those who wait to be accepted lose nothing.
        """
        if self._tls is None or self._tls.stamp() == self._stamp:
            return
        self._stamp = self._tls.stamp()
        try:
            fresh = await self._again(self._tls.context(self._alpn))
        except (GlowplugError, OSError) as error:
            self._log.event("certificates_kept", protocol=self._alpn, error=str(error))
            return
        old, self._secured = self._secured, fresh
        for server in old:
            server.close()
        self._log.event("certificates_read", protocol=self._alpn)

    async def _again(self, context: ssl.SSLContext) -> list[asyncio.Server]:
        made = list[asyncio.Server]()
        for server in self._secured:
            for one in server.sockets:
                again = socket.socket(fileno=os.dup(one.fileno()))
                made.append(
                    await self._loop.create_server(
                        self._factory,
                        sock=again,
                        backlog=_BACKLOG,
                        ssl=context,
                        ssl_handshake_timeout=HANDSHAKE_SECONDS,
                    )
                )
        return made

    def close(self) -> None:
        """Listen no more; connections stay."""
        for server in (*self._servers, *self._secured):
            server.close()


def _take_socket(path: str, log: Log) -> None:
    """Make room for our socket: the name belongs to the server that came last, as with TensorFlow Serving.

    A server that still listens behind it keeps the connections that it has and gets no new ones.
    """
    if not Path(path).is_socket():
        return
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
        probe.connect(path)
        log.event("socket_taken_over", path=path)
    Path(path).unlink(missing_ok=True)
