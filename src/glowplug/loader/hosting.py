"""Hosts a model for its owner in another process. Runs in a child of a native standby, which imports it ahead of time.

It ends when its owner closes the connection or dies.
"""

from __future__ import annotations

import contextlib
from typing import Any

from glowplug.core.errors import GlowplugError

# What a child would import first is imported here, before the fork.
from glowplug.runtime import oplibrary  # noqa: F401
from glowplug.standby import wire

from .channel import INPUTS, OUTPUTS, SOCKET, Arena, describe_error
from .engines import litert, litert_interfaces, native, savedmodel  # noqa: F401
from .model import Model
from .open import load
from .rehearsal import exercise  # noqa: F401 - the standby calls it

litert_interfaces.preload()


def host(path: str, options: dict[str, Any]) -> int:
    """Load the bundle and answer calls until the owner is gone."""
    connection = wire.Socket(fileno=SOCKET)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        try:
            model = load(path, **options)
        except GlowplugError as error:
            wire.send(connection, describe_error(error))
            return 0
        wire.send(connection, {"notes": list(model.info.notes)})
        inputs, outputs = Arena(INPUTS), Arena(OUTPUTS)
        while (message := wire.receive(connection)[0]) is not None:
            wire.send(connection, _answer(model, message, inputs, outputs))
    return 0


def _answer(model: Model, message: dict[str, Any], inputs: Arena, outputs: Arena) -> dict[str, Any]:
    name = message["signature"]
    ports = model.signatures[name].outputs.values()
    try:
        results = model._engine.run(name, inputs.get(message["inputs"], copy=False))
        return {"outputs": outputs.put(results, [port.spec.dtype for port in ports])}
    except GlowplugError as error:
        return describe_error(error)
