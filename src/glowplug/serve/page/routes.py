"""The page at `/`, and the document that it asks for.

The page itself is the same for everyone and holds nothing of the server. Where tokens are asked for, browsers get it
without one, and it sends the token that is typed into it with each of its own requests.
"""

from __future__ import annotations

from glowplug.serve.rest.exchange import Handler, Request, Response

from .document import LiveDocument
from .shell import HEADERS, make_shell

HOME, LIVE = "/", "/v1/glowplug/live"


def with_page(other: Handler, document: LiveDocument) -> Handler:
    """Return a handler that has the page, and leaves the rest to another one."""
    shell, policy = make_shell()
    headers = {**HEADERS, "Content-Security-Policy": policy}

    async def answer(request: Request) -> Response:
        if request.path in (HOME, LIVE) and request.method in ("GET", "HEAD"):
            if request.path == HOME:
                return Response(200, shell, "text/html; charset=utf-8", dict(headers))
            return Response(200, document.read(), headers={"Cache-Control": "no-store"})
        return await other(request)

    return answer
