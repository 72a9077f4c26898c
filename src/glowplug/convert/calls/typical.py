"""Of all recorded calls, the one to measure with."""

from __future__ import annotations

from glowplug.bundle.warmup import Request

from .equivalence import Recording

_DEFAULT = "serving_default"


def typical_request(recording: Recording, given: int = 0, signature: str = "") -> Request | None:
    """Return the first request that the user gave and the source answers, else the smallest made-up one.

    `given` is how many requests the user gave. Without a signature it is that of `serving_default`, or of any other.
    """
    calls = [
        call
        for call in recording.calls
        if call.answer is not None and all(value.size for value in call.request.inputs.values())
    ]
    names = [call.request.signature for call in calls]
    wanted = signature or (_DEFAULT if _DEFAULT in names else next(iter(names), ""))
    found = [call for call in calls if call.request.signature == wanted]
    if given or not found:
        return found[0].request if found else None
    telling = [call.request for call in found if call.says_something] or [call.request for call in found]
    return min(telling, key=lambda one: sum(value.nbytes for value in one.inputs.values()))
