"""The same script under Ray Train, with four workers: ray_train.py [--address HOST:PORT]"""

from __future__ import annotations

import argparse
import json
import tempfile

import ray
import ray.train
from ray.train import RunConfig, ScalingConfig
from ray.train.data_parallel_trainer import DataParallelTrainer
from step import run


def each_worker() -> None:
    ray.train.report(run(0))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", default="auto")
    ray.init(address=parser.parse_args().address, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        trainer = DataParallelTrainer(
            each_worker, scaling_config=ScalingConfig(num_workers=4), run_config=RunConfig(storage_path=folder)
        )
        metrics = trainer.fit().metrics
        print(json.dumps({name: metrics[name] for name in ("loss", "restored", "traced")}))


if __name__ == "__main__":
    main()
