"""Cross-origin requests, answered as TensorFlow Serving does under `--rest_api_enable_cors_support`."""

from __future__ import annotations

from .exchange import Handler, Request, Response

_API = "/v1/"
_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "POST, GET",
    "Access-Control-Allow-Headers": "Content-Type",
}


def with_cors(handler: Handler, *, tokens: bool = False) -> Handler:
    """Return a handler whose answers a page of any origin may read, and that answers a browser's question first.

    `tokens` says that requests may carry one.
    """

    headers = _HEADERS | ({"Access-Control-Allow-Headers": "Content-Type, Authorization"} if tokens else {})

    async def answer(request: Request) -> Response:
        if not request.path.lower().startswith(_API):
            return await handler(request)
        if request.method == "OPTIONS":
            asked = request.headers.get(b"origin", b"").startswith((b"http://", b"https://"))
            response = Response(200 if asked else 400, b"")
        else:
            response = await handler(request)
        response.headers.update(headers)
        return response

    return answer
