"""The life of each further Python thread. Runs in the target."""

from __future__ import annotations

from .patching import Patcher
from .recorder import Recorder

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any


def install(recorder: Recorder) -> Any:
    """Return a hook for `threading`."""

    def hook(module: Any) -> None:
        def make(original: Any) -> Any:
            def _bootstrap_inner(self: Any) -> None:
                number = recorder.begin("user_code", str(self.name), {"kind": "thread"})
                try:
                    original(self)
                finally:
                    recorder.end(number)

            return _bootstrap_inner

        Patcher(recorder, "Python").replace(module.Thread, "_bootstrap_inner", make, quiet=True)

    return hook
