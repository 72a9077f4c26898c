"""A model was loaded inside a coroutine, so that the event loop stood still for as long."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import WORTH_NS, Match
from glowplug.advise.view import View, ids
from glowplug.advise.wording import at, pack_command, seconds
from glowplug.core.profile import Remedy

SYMPTOM = "A load inside a coroutine stops the event loop"

_CODE = """\
import glowplug
model = await glowplug.load_async("model.glow")
# or, with stock TensorFlow:
model = await asyncio.to_thread(keras.models.load_model, path)"""


def find(view: View) -> Iterator[Match]:
    """Report loads that ran on the thread of a running event loop."""
    for load in view.outermost(view.of_kind("load")):
        if not load.attrs.get("in_event_loop") or load.duration_ns < WORTH_NS:
            continue
        path = str(load.attrs.get("path", load.name))
        yield Match(
            title=f"The event loop stood still for {seconds(load.duration_ns)} while {path} was loaded"
            f"{at(load.attrs.get('site'))}",
            evidence={"path": path, "blocked_ns": load.duration_ns, "site": load.attrs.get("site")},
            saves_ns=load.duration_ns,
            remedy=Remedy(
                text="Load in the background and let the loop answer meanwhile.",
                code=_CODE,
                command=pack_command(path),
            ),
            spans=ids([load]),
        )
