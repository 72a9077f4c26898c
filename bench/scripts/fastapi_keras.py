"""What people write today: a Keras model behind FastAPI, started as `uvicorn --workers N fastapi_keras:app`.

Each worker leaves a file in READY_FOLDER once it has answered a call of its own.
"""

import os
from pathlib import Path

import keras
import numpy as np
from fastapi import FastAPI, Request

model = keras.models.load_model(os.environ["MODEL"], compile=False)
shape, dtype = model.input_shape[1:], model.inputs[0].dtype
model.predict_on_batch(np.zeros((1, *shape), dtype))
Path(os.environ["READY_FOLDER"], str(os.getpid())).touch()

app = FastAPI()


@app.post("/predict")
async def predict(request: Request):
    instances = np.array((await request.json())["instances"], dtype)
    return {"predictions": model.predict_on_batch(instances).tolist()}
