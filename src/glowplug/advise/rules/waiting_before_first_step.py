"""The start waited for something other than computation: DNS, a socket, a subprocess, a database, a sleep."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import WORTH_NS, Match
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import at, seconds
from glowplug.core.profile import Remedy, Span

SYMPTOM = "The start waits for the network, a subprocess, a database or a sleep"

_WAITS = ("dns", "socket", "subprocess", "database", "sleep")

_CODE = """\
with ThreadPoolExecutor() as pool:
    settings = pool.submit(fetch_settings)  # begins now
    model = build()                         # the wait and the build overlap
    configure(model, settings.result())"""


def find(view: View) -> Iterator[Match]:
    """Add up the waits of the program's main thread before its first step, by what was waited for."""
    profile = view.profile
    until_ns = view.first_step_ns(profile.root_pid)
    if until_ns is None:
        return  # no start-up to be on the way of: a server's or a tool's waiting is its business
    groups: dict[tuple[str, str], list[Span]] = {}
    for span in view.outermost(view.of_kind("io")):
        if profile.on_main_thread(span) and span.end_ns <= until_ns and span.attrs.get("io") in _WAITS:
            groups.setdefault((str(span.attrs["io"]), str(span.attrs.get("target", span.name))), []).append(span)
    waited = sorted(((total_ns(spans), key, spans) for key, spans in groups.items()), key=lambda each: -each[0])
    waited_ns = sum(ns for ns, _, _ in waited)
    if waited_ns < WORTH_NS:
        return
    _, (what, target), spans = waited[0]
    yield Match(
        title=(f"The first step waited {seconds(waited_ns)} for {what} ({target}){at(spans[0].attrs.get('site'))}"),
        evidence={
            "waited_ns": waited_ns,
            "waits": [
                {"io": io, "target": to, "ns": ns, "calls": sum(int(s.attrs.get("calls", 1)) for s in of)}
                for ns, (io, to), of in waited[:5]
            ],
            "site": spans[0].attrs.get("site"),
        },
        saves_ns=waited_ns,
        remedy=Remedy(
            text=(
                "Take the wait off the start path: do it in another thread while the model is built, "
                "cache it, or drop it."
            ),
            code=_CODE,
        ),
        spans=ids(spans),
    )
