"""What a first layer gains from calling two hidden functions of TensorFlow in the standby (decision 0037).

    standby_warming.py [--rounds 15]

Two standbys run beforehand, alike but for the lookup in the libraries' symbol tables. A program that makes one Keras
layer starts from each by turns; the clock starts just before the client's process is made and ends after the layer.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import machine

SCRIPTS = Path(__file__).parent / "scripts"
SIDES = ("with_hidden_functions", "without_hidden_functions")


def first_layer(side: str) -> int:
    """Return the nanoseconds from before the process was made to the line after the layer's result."""
    command = [SCRIPTS / "in_standby.py", f"{side},tensorflow,keras", SCRIPTS / "first_layer.py"]
    began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return int(machine.run_quietly(command)) - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    machine.prepare()
    raw: dict[str, list[int]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory(prefix="standby-") as directory:
        os.environ["GLOWPLUG_STANDBY_DIR"] = directory
        os.environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, [os.environ.get("PYTHONPATH"), str(SCRIPTS / "preloads")])
        )
        try:
            for side in SIDES * 2:  # starts them, and lets each have its next child wait
                first_layer(side)
                time.sleep(1)
            for number in range(args.rounds):
                for side in SIDES if number % 2 == 0 else SIDES[::-1]:
                    raw[side].append(first_layer(side))
                    time.sleep(0.5)  # for the next child to be ready, as between a person's runs
        finally:
            subprocess.run(
                [sys.executable, "-m", "glowplug", "standby", "stop", "--all"], check=True, stdout=subprocess.DEVNULL
            )
    found = {f"{side}_ns": int(median(values)) for side, values in raw.items()}
    gain = found["without_hidden_functions_ns"] - found["with_hidden_functions_ns"]
    print(f"with {found['with_hidden_functions_ns'] / 1e6:.1f} ms, without {gain / 1e6:+.1f} ms")
    machine.write_result(
        "standby_warming",
        {"machine": machine.describe(), **found, "gain_ns": gain, "rounds": raw},
        partial=args.rounds < 15,
    )


if __name__ == "__main__":
    main()
