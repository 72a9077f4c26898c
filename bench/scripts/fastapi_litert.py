"""A TensorFlow Lite model behind FastAPI, started as `uvicorn --workers N fastapi_litert:app`.

Each worker leaves a file in READY_FOLDER once it has answered a call of its own. No TensorFlow is imported.
"""

import os
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from fastapi import FastAPI, Request

interpreter = Interpreter(os.environ["MODEL"], num_threads=1)
given, found = interpreter.get_input_details()[0], interpreter.get_output_details()[0]


def run(instances):
    if interpreter.get_input_details()[0]["shape"].tolist() != list(instances.shape):
        interpreter.resize_tensor_input(given["index"], instances.shape)
        interpreter.allocate_tensors()
    interpreter.set_tensor(given["index"], instances)
    interpreter.invoke()
    return interpreter.get_tensor(found["index"])


interpreter.allocate_tensors()
run(np.zeros(given["shape"], given["dtype"]))
Path(os.environ["READY_FOLDER"], str(os.getpid())).touch()

app = FastAPI()


@app.post("/predict")
async def predict(request: Request):
    instances = np.array((await request.json())["instances"], given["dtype"])
    return {"predictions": run(instances).tolist()}
