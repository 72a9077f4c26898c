"""What a call costs where it crosses the end of a chunk of CPython's frame stack, without and with room below it.

    frame_stack.py [--calls 2000] [--depths 200]

At each depth of recursion a small function is called in a loop. CPython 3.11 and later keep frames in chunks of 16 KB:
where the loop stands at the end of one, each call maps a chunk and unmaps it again. `roomy` is what the probe does to
its wrappers (docs/decisions/0014-room-on-the-frame-stack.md). The result is in bench/results/frame_stack.json.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src" / "glowplug" / "probe" / "entry"))

import machine
from _glowplug_shim.patching import roomy


def small() -> None:
    """Be called."""


# A frame larger than that of `measure`: there is a depth at which the one fits and the other does not.
small.__code__ = small.__code__.replace(co_stacksize=64)


def measure(depth: int, calls: int) -> tuple[float, float]:
    """Return nanoseconds and page faults of one call, `depth` frames further down."""
    if depth:
        return measure(depth - 1, calls)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    began = time.perf_counter_ns()
    for _ in range(calls):
        small()
    took = time.perf_counter_ns() - began
    return took / calls, (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults) / calls


@roomy
def measure_with_room(depth: int, calls: int) -> tuple[float, float]:
    """Do the same from a frame that leaves room behind it."""
    return measure(depth, calls)


def over_depths(function: Callable[[int, int], tuple[float, float]], depths: int, calls: int) -> dict[str, Any]:
    """Return the usual and the worst cost of a call, and at how many depths each call faulted."""
    results = [function(depth, calls) for depth in range(depths)]
    return {
        "median_ns": median(took for took, _ in results),
        "largest_ns": max(took for took, _ in results),
        "depths_that_fault_each_call": sum(faults > 0.5 for _, faults in results),
    }


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--depths", type=int, default=200)
    args = parser.parse_args()
    over_depths(measure, args.depths, 10)
    document = {
        "machine": machine.describe(),
        "depths": args.depths,
        "calls": args.calls,
        "plain": over_depths(measure, args.depths, args.calls),
        "roomy": over_depths(measure_with_room, args.depths, args.calls),
    }
    machine.write_result("frame_stack", document, partial=False)


if __name__ == "__main__":
    main()
