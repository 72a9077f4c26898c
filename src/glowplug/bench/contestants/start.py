"""The process of one contestant: opens a model, answers once, and then does what the parent asks for.

Run as a script, in the contestant's own environment, by that environment's interpreter: the standard library, numpy and
what the contestant itself brings are all there is. The argument is the job as JSON. Each line on standard output is a
report, each line on standard input a request: `{"answers": DIRECTORY}` or `{"steady": SECONDS, "callers": N}`. The end
of standard input ends the process.

A contestant is a module beside this one with `open_model(job) -> call`, which takes and returns arrays by name, and
`SHARED`, whether that call may be made from several threads at once.

No pathlib here, which costs as much as a small model's first call. The parent uses `read_arrays` and `write_arrays`,
too: numbers are raw bytes, strings are one after the other.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

Call = Callable[[Mapping[str, Any]], Mapping[str, Any]]

_WARM_CALLS = 2  # after the first one, and before any is timed
_FEWEST_CALLS = 5


def now_ns() -> int:
    """Return a reading of the clock that all processes share."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def write_arrays(directory: str, arrays: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """Write each array into a file of its own; return the descriptions that `read_arrays` takes."""
    described = []
    for place, (name, array) in enumerate(arrays.items()):
        file = f"{directory}/{place}.bin"
        one: dict[str, Any] = {"name": name, "dtype": str(array.dtype), "shape": list(array.shape), "file": file}
        if array.dtype.kind in "OSU":
            texts = [text.encode() if isinstance(text, str) else bytes(text) for text in array.reshape(-1)]
            one.update(dtype="string", lengths=[len(text) for text in texts])
            data = b"".join(texts)
        else:
            data = array.tobytes()
        with open(file, "wb") as stream:
            stream.write(data)
        described.append(one)
    return described


def read_arrays(described: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Return arrays by name."""
    import numpy as np

    arrays: dict[str, NDArray[Any]] = {}
    for one in described:
        with open(one["file"], "rb") as stream:
            data = stream.read()
        if one["dtype"] == "string":
            texts, at = [], 0
            for length in one["lengths"]:
                texts.append(data[at : at + length])
                at += length
            array: NDArray[Any] = np.empty(len(texts), object)
            array[:] = texts
        else:
            if one["dtype"] == "bfloat16":
                import ml_dtypes  # noqa: F401 - teaches numpy the name
            array = np.frombuffer(data, np.dtype(one["dtype"]))
        arrays[one["name"]] = array.reshape(one["shape"])
    return arrays


def main() -> None:
    """Run the job. The parent knows when it began."""
    reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever libraries print is no report
    job = json.loads(sys.argv[1])
    if job["import_path"]:
        sys.path[1:] = job["import_path"]
    contestant = __import__(job["contestant"])
    call = contestant.open_model(job)
    loaded = now_ns()
    inputs = read_arrays(job["inputs"])
    answer = call(inputs)
    _report(reports, first_at_ns=now_ns(), loaded_at_ns=loaded)
    for line in sys.stdin:
        request = json.loads(line)
        if "answers" in request:
            _report(reports, answers=write_arrays(request["answers"], dict(answer)))
        else:
            _report(reports, **_steady(contestant, call, job, inputs, request))
    os._exit(0)  # taking a library down can take longer than the work


def _steady(
    contestant: ModuleType, call: Call, job: Mapping[str, Any], inputs: Mapping[str, Any], request: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the median call of one caller, and how many calls a second several make at once."""
    seconds, callers = request["steady"], request["callers"]
    for _ in range(_WARM_CALLS):
        call(inputs)
    took = 0
    durations: list[int] = []
    while len(durations) < _FEWEST_CALLS or took < seconds * 1e9:
        began = now_ns()
        call(inputs)
        durations.append(now_ns() - began)
        took += durations[-1]
    latency = sorted(durations)[len(durations) // 2]
    if callers == 1:
        return {"latency_ns": latency, "rate_per_second": len(durations) * 1e9 / took}
    calls = [call] * callers
    if not contestant.SHARED:
        calls = [contestant.open_model({**job, "threads": max(1, job["threads"] // callers)}) for _ in range(callers)]
    return {"latency_ns": latency, "rate_per_second": _rate(calls, inputs, seconds)}


def _rate(calls: Sequence[Call], inputs: Mapping[str, Any], seconds: float) -> float:
    import threading

    for call in calls:
        call(inputs)
    together = threading.Barrier(len(calls))
    made: list[tuple[int, int, int]] = []

    def caller(call: Call) -> None:
        together.wait()
        began, count = now_ns(), 0
        while count < _FEWEST_CALLS or now_ns() - began < seconds * 1e9:
            call(inputs)
            count += 1
        made.append((count, began, now_ns()))

    threads = [threading.Thread(target=caller, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(made) < len(calls):
        raise SystemExit("a call from one of several threads failed")
    span = max(end for _, _, end in made) - min(began for _, began, _ in made)
    return sum(count for count, _, _ in made) * 1e9 / span


def _report(stream: Any, **content: Any) -> None:
    print(json.dumps(content), file=stream, flush=True)


if __name__ == "__main__":
    main()
