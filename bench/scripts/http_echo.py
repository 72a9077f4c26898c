"""The same trivial answer by three HTTP servers: http_echo.py ours|asgi|starlette PORT"""

import asyncio
import sys

import uvloop

BODY = b'{"predictions":[0.5]}'


def ours(port):
    from glowplug.serve.rest.exchange import Budget, HttpSettings, Response
    from glowplug.serve.rest.http import Connection

    async def answer(request):
        return Response(200, BODY)

    async def main():
        loop, connections = asyncio.get_running_loop(), set()
        server = await loop.create_server(
            lambda: Connection(answer, HttpSettings(1 << 26, Budget(1 << 27)), connections), "127.0.0.1", port
        )
        await server.serve_forever()

    uvloop.run(main())


def asgi(port):
    import uvicorn

    async def app(scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"21")]})
        await send({"type": "http.response.body", "body": BODY})

    uvicorn.run(app, port=port, loop="uvloop", http="httptools", log_level="warning", lifespan="off")


def starlette(port):
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def answer(request):
        await request.body()
        return Response(BODY, media_type="application/json")

    app = Starlette(routes=[Route("/v1/models/m:predict", answer, methods=["POST"])])
    uvicorn.run(app, port=port, loop="uvloop", http="httptools", log_level="warning")


{"ours": ours, "asgi": asgi, "starlette": starlette}[sys.argv[1]](int(sys.argv[2]))
