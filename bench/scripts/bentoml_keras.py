"""A Keras model as a BentoML service, started as `bentoml serve bentoml_keras:Model`.

Each worker leaves a file in READY_FOLDER once it has answered a call of its own.
"""

import os
from pathlib import Path

import bentoml
import keras
import numpy as np


@bentoml.service(workers=int(os.environ["WORKERS"]))
class Model:
    def __init__(self) -> None:
        self.model = keras.models.load_model(os.environ["MODEL"], compile=False)
        shape, self.dtype = self.model.input_shape[1:], self.model.inputs[0].dtype
        self.model.predict_on_batch(np.zeros((1, *shape), self.dtype))
        Path(os.environ["READY_FOLDER"], str(os.getpid())).touch()

    @bentoml.api(route="/predict")
    def predict(self, instances: list) -> dict:
        return {"predictions": self.model.predict_on_batch(np.array(instances, self.dtype)).tolist()}
