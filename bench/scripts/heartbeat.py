"""An event loop that beats every millisecond while a model is loaded: heartbeat.py BUNDLE_OR_URL [async|ready|idle]

Prints one JSON line: the longest time between two beats, and how long the load took. `ready` waits until the model is
ready too; `idle` loads nothing, and shows what the machine itself does to a beat.
"""

import asyncio
import json
import sys
import time

import glowplug

BETWEEN_S = 0.001


async def main(path: str, way: str) -> dict[str, float | int]:
    longest, beats = 0.0, 0

    async def beat() -> None:
        nonlocal longest, beats
        last = time.perf_counter()
        while True:
            await asyncio.sleep(BETWEEN_S)
            now = time.perf_counter()
            longest, last, beats = max(longest, now - last), now, beats + 1

    beating = asyncio.ensure_future(beat())
    await asyncio.sleep(0.05)
    longest, beats = 0.0, 0
    began = time.perf_counter()
    if way == "idle":
        await asyncio.sleep(1)
    else:
        model = await glowplug.load_async(path)
        if way == "ready":
            await model.when_ready()
    took = time.perf_counter() - began
    beating.cancel()
    if way != "idle":
        model.close()
    return {"longest_gap_s": longest, "load_s": took, "beats": beats}


print(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "async"))))
