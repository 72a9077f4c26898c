"""From a host and a port to bound sockets: each address of a name, and IPv4 beside IPv6 where all are meant."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable

from glowplug.core.errors import UsageError

_EVERY_IPV4, _EVERY_IPV6 = "0.0.0.0", "::"
_NOT_HERE = (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.EADDRNOTAVAIL)  # other addresses of a name may be

Address = tuple[socket.AddressFamily, tuple[str, int]]


async def bind(host: str, port: int, without_ipv6: Callable[[], None]) -> list[socket.socket]:
    """Return a bound socket for each address of a host; raises `UsageError` where it cannot be listened on.

    `::` and nothing at all mean every address, those of IPv4 too. On a machine without IPv6 those are all there are,
    and `without_ipv6` is told. Of a name with several addresses those count that this machine has.
    """
    try:
        addresses = await _resolve(host, port)
    except (OSError, UnicodeError) as error:
        raise UsageError(
            "this host has no address",
            seen=f"{host[:200]} ({getattr(error, 'strerror', None) or error})",
            remedy="give --host an address of this machine, 0.0.0.0 for all of IPv4, :: for all",
        ) from error
    made, refusals = list[socket.socket](), list[OSError]()
    for family, address in addresses:
        try:
            made.append(_bound(family, address))
        except OSError as error:
            refusals.append(error)
            if error.errno not in _NOT_HERE:
                break
    if addresses[0][1][0] == _EVERY_IPV6 and refusals and refusals[0].errno in _NOT_HERE:
        without_ipv6()
        try:
            return [_bound(socket.AF_INET, (_EVERY_IPV4, port))]
        except OSError as error:
            refusals = [error]
    if refusals and (not made or refusals[-1].errno not in _NOT_HERE):
        for one in made:
            one.close()
        raise refused(host, port, refusals[-1])
    return made


async def _resolve(host: str, port: int) -> list[Address]:
    """Return the addresses of a host, each once. IPv6's for all of them takes IPv4 as well, so it stands alone."""
    plain = host[1:-1] if host.startswith("[") and host.endswith("]") else host  # as in a URL
    if plain in ("", _EVERY_IPV6):
        return [(socket.AF_INET6, (_EVERY_IPV6, port))]
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(plain, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    every: list[Address] = [(family, address) for family, _, _, _, address in found]  # type: ignore[misc]
    both = any(address[0] == _EVERY_IPV6 for _, address in every)
    return [one for one in dict.fromkeys(every) if not (both and one[1][0] == _EVERY_IPV4)]


def _bound(family: socket.AddressFamily, address: tuple[str, int]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:  # asyncio would turn it on, and a system's own default may be either
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind(address)
    except BaseException:
        made.close()
        raise
    return made


def refused(host: str, port: int, error: OSError) -> UsageError:
    """Return the error for an address that cannot be listened on."""
    remedy = "choose another port"
    if error.errno in _NOT_HERE:
        remedy = "give --host an address of this machine, 0.0.0.0 for all of IPv4, :: for all"
    elif error.errno == errno.EACCES:
        remedy = "choose a port above 1023"
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return UsageError("cannot listen on this address", seen=f"{shown}:{port} ({error.strerror})", remedy=remedy)
