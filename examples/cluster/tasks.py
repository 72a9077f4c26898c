"""Four plain Ray tasks start the same Keras script: tasks.py [--address HOST:PORT]

The first of a node traces the step; the others, and every later run on that node, restore it.
"""

from __future__ import annotations

import argparse
import json

import ray
from step import run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", default="auto")
    ray.init(address=parser.parse_args().address, log_to_driver=False)
    worker = ray.remote(max_calls=1)(run)  # a process of its own for each, as separate jobs have
    first = ray.get(worker.remote(0))
    rest = ray.get([worker.remote(0) for _ in range(3)])
    print(json.dumps([first, *rest]))


if __name__ == "__main__":
    main()
