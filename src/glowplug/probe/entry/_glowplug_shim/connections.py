"""The first connection that a program accepts from the network: from then on somebody uses it. Runs in the target.

Python's own sockets (and so asyncio, http.server, gunicorn's workers) and uvloop are watched. A server that is not
written in Python accepts where nobody here can see it.
"""

from __future__ import annotations

from .patching import dress
from .recorder import Recorder, now_ns

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any


class Connections:
    """Instruments for accepting."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._seen = False

    def hooks(self) -> dict[str, Any]:
        """Return the hooks by module."""
        return {"socket": self.install_socket, "uvloop": self.install_uvloop}

    def accepted(self) -> None:
        """Record the first one of this process."""
        if not self._seen:
            self._seen = True
            at_ns = now_ns()
            self.recorder.span(at_ns, at_ns, "user_code", "first connection", {"kind": "connection"})

    def install_socket(self, module: Any) -> None:
        """Instrument `accept` of sockets of the network: those of one machine's own are how its processes talk."""
        network = (module.AF_INET, module.AF_INET6)
        original = module.socket.accept

        def accept(self_: Any) -> Any:
            answer = original(self_)
            if not self._seen and self_.family in network:
                self.accepted()
            return answer

        module.socket.accept = dress(accept, original)

    def install_uvloop(self, module: Any) -> None:
        """Instrument uvloop's servers, which make a protocol for each connection that they accept."""

        def make(original: Any) -> Any:
            def create_server(loop: Any, protocol_factory: Any, *args: Any, **kwargs: Any) -> Any:
                def connected() -> Any:
                    self.accepted()
                    return protocol_factory()

                return original(loop, connected, *args, **kwargs)

            return create_server

        loop = getattr(module, "Loop", None)
        original = getattr(loop, "create_server", None)
        if loop is None or original is None:
            self.recorder.note("this uvloop has no Loop.create_server: the first connection is not seen")
            return
        loop.create_server = dress(make(original), original)
