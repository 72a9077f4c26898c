"""A Keras model behind Ray Serve on this machine alone, started as `ray_keras.py PORT`.

As many files are left in READY_FOLDER as there are replicas once all of them answer. SIGTERM ends it.
"""

import os
import signal
import sys
import threading
from pathlib import Path

import ray
from ray import serve
from starlette.requests import Request

WORKERS = int(os.environ["WORKERS"])


@serve.deployment(num_replicas=WORKERS, max_ongoing_requests=100, ray_actor_options={"num_cpus": 0.1})
class Model:
    def __init__(self) -> None:
        import keras
        import numpy as np

        self.array = np.array
        self.model = keras.models.load_model(os.environ["MODEL"], compile=False)
        shape, self.dtype = self.model.input_shape[1:], self.model.inputs[0].dtype
        self.model.predict_on_batch(np.zeros((1, *shape), self.dtype))

    async def __call__(self, request: Request) -> dict:
        instances = (await request.json())["instances"]
        return {"predictions": self.model.predict_on_batch(self.array(instances, self.dtype)).tolist()}


def main() -> None:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(include_dashboard=False, _node_ip_address="127.0.0.1", logging_level="warning")  # else eth0's address
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
        serve.run(Model.bind(), route_prefix="/predict")
        for worker in range(WORKERS):
            Path(os.environ["READY_FOLDER"], str(worker)).touch()
        stop.wait()
    finally:
        serve.shutdown()
        ray.shutdown()


if __name__ == "__main__":
    main()
