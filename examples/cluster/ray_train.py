"""The same script under Ray Train, with four workers: ray_train.py [--address HOST:PORT]"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import ray
import ray.train
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.tensorflow import TensorflowTrainer
from step import run


def each_worker() -> None:
    found = run(0)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "found.json").write_text(json.dumps(found))
        first = ray.train.get_context().get_world_rank() == 0
        ray.train.report(found, checkpoint=Checkpoint.from_directory(folder) if first else None)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", default="auto")
    ray.init(address=parser.parse_args().address, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        trainer = TensorflowTrainer(
            each_worker, scaling_config=ScalingConfig(num_workers=4), run_config=RunConfig(storage_path=folder)
        )
        metrics = trainer.fit().metrics
        print(json.dumps({name: metrics[name] for name in ("loss", "restored", "traced")}))


if __name__ == "__main__":
    main()
