"""Many small requests to one address, each waiting for its own round trip, where one request would do."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import WORTH_NS, Match
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import at, seconds, size
from glowplug.core.profile import Remedy, Span

SYMPTOM = "Remote data is read in many small requests, one after the other"

_LEAST_REQUESTS = 10

_CODE = """\
with fsspec.open(url).open() as remote, open(local, "wb") as file:
    shutil.copyfileobj(remote, file, 16 << 20)  # one request, large pieces; then load the local file"""


def find(view: View) -> Iterator[Match]:
    """Group socket waits by address and thread."""
    groups: dict[tuple[int, int, str], list[Span]] = {}
    for span in view.outermost(view.of_kind("io")):
        if span.attrs.get("io") == "socket":
            key = (span.pid, span.thread, str(span.attrs.get("target", span.name)))
            groups.setdefault(key, []).append(span)
    for (_, _, target), spans in groups.items():
        calls = sum(int(span.attrs.get("calls", 1)) for span in spans)
        waited_ns = total_ns(spans)
        saves_ns = round(waited_ns * (calls - 1) / calls) if calls else 0
        if calls < _LEAST_REQUESTS or saves_ns < WORTH_NS:
            continue
        moved = sum(int(span.attrs.get("bytes", 0)) for span in spans)
        yield Match(
            title=(
                f"{calls} waits for {target}, {seconds(waited_ns / calls)} each: {seconds(waited_ns)}"
                f"{at(spans[0].attrs.get('site'))}"
            ),
            evidence={
                "target": target,
                "waits": calls,
                "waited_ns": waited_ns,
                "bytes": moved,
                "size": size(moved),
                "site": spans[0].attrs.get("site"),
            },
            saves_ns=saves_ns,
            remedy=Remedy(
                text=("Fetch the whole model in one request over one connection, keep it on local disk, then load it."),
                code=_CODE,
            ),
            spans=ids(spans),
        )
