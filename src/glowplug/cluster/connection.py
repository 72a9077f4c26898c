"""The way to a Ray cluster: Ray itself, which is an extra, and its address. What is wrong becomes one line."""

from __future__ import annotations

import contextlib
import logging
import socket
from typing import Any
from urllib.parse import urlsplit

from glowplug.core.errors import NoClusterError, OtherVersionError

NAMESPACE = "glowplug"
_ANSWER_S = 5.0  # a head node that lives takes a connection at once


def require_ray() -> Any:
    """Return Ray's module; raise `NoClusterError` where it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise NoClusterError(
            "glowplug.cluster needs Ray, which is not installed",
            seen=error.name or error,
            remedy="pip install 'glowplug[ray]'",
        ) from error
    return ray


def connect(address: str | None = None) -> Any:
    """Return Ray's module, connected: as it is where this process is connected already, else to `address`.

    Without an address it is `RAY_ADDRESS`, else a cluster that runs on this machine.
    """
    ray = require_ray()
    if ray.is_initialized():
        return ray
    if address is not None and address != "auto":
        _require_listener(address)
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        ray.init(
            address=address or "auto",
            namespace=NAMESPACE,
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=True,
        )
        logging.getLogger("ray.serve").setLevel(logging.ERROR)
    except RuntimeError as error:
        if "ersion mismatch" not in str(error):
            raise _unreachable(address, error) from error
        raise OtherVersionError(
            "the cluster has another version of Ray or Python than this environment",
            seen=" ".join(str(error).split())[:300],
            remedy="use the environment that the cluster was started with",
        ) from error
    except (ConnectionError, TimeoutError, ValueError) as error:
        raise _unreachable(address, error) from error
    return ray


def _require_listener(address: str) -> None:
    """Look whether anybody listens: Ray itself would try for a minute."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _unreachable(address, error) from error
    if not host or port is None:
        raise NoClusterError(
            "this is no address of a Ray cluster",
            seen=address,
            remedy="it is HOST:PORT, as `ray start --head` prints it, or ray://HOST:PORT",
        )
    try:
        with contextlib.closing(socket.create_connection((host, port), _ANSWER_S)):
            pass
    except OSError as error:
        raise _unreachable(address, error) from error


def _unreachable(address: str | None, error: Exception) -> NoClusterError:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
    return NoClusterError(
        "there is no Ray cluster",
        seen=f"{address or 'RAY_ADDRESS is not set, and none runs on this machine'} ({reason})",
        remedy="start one (`ray start --head`), or pass its address (--address HOST:PORT)",
    )
