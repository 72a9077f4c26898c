"""The same service with a bundle: uvicorn_service.py MODEL, beside which the bundle is"""

import sys
import threading
import urllib.request

import numpy as np
import uvicorn
from fastapi import FastAPI

import glowplug

app = FastAPI()
model = glowplug.load(sys.argv[1].replace(".keras", ".glow"))


@app.get("/")
def answer() -> float:
    return float(model.array(np.ones([1, 8], "float32"))[0, 0])


def ask(port: int) -> None:
    print(urllib.request.urlopen(f"http://127.0.0.1:{port}/").read().decode())
    server.should_exit = True


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        threading.Thread(target=ask, args=[port]).start()


server = Server(uvicorn.Config(app, port=0, log_level="warning"))
server.run()
