"""Load a model inside a coroutine while another one waits to answer."""

import asyncio
import sys

import keras
import numpy as np


async def answer():
    for _ in range(5):
        await asyncio.sleep(0.01)


async def serve():
    other = asyncio.create_task(answer())
    model = keras.models.load_model(sys.argv[1] + "/model.keras")
    model(np.ones([1, 64], "float32"))
    await other


asyncio.run(serve())
