"""Processes that are killed while they fill the cache, and many that fill it at once: what comes after is right."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow

# One process imports TensorFlow and forks before any operation has run; every child is a first run of its own.
SCRIPT = """
import json, os, signal, sys, time
sys.path[:0] = {path!r}
from glowplug import train
from tests.train import models

def child(cache, *, kill_at=None):
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    os.close(reading)
    if kill_at is not None:
        seen = [0]
        def watch(event, arguments):  # files that are opened, renamed and removed below the cache
            if arguments and str(arguments[0]).startswith(cache):
                seen[0] += 1
                if seen[0] == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(watch)
    if cache:
        train.enable(cache)
    result = models.trained(models.small())
    with os.fdopen(writing, "w") as stream:
        stream.write(json.dumps([result, train.counts()]))
    os._exit(0)

def outcome(process, reading):
    with os.fdopen(reading) as stream:
        text = stream.read()
    _, status = os.waitpid(process, 0)
    return json.loads(text) if status == 0 else status

cache, how, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
stock = outcome(*child(""))[0]
ends = []
if how == "files":
    for number in range(count):
        ends.append(outcome(*child(cache, kill_at=3 * number + 1)))
elif how == "times":
    began = time.monotonic()
    assert outcome(*child(cache + "-other"))[0] == stock
    whole = time.monotonic() - began
    for number in range(count):
        process, reading = child(cache)
        time.sleep(whole * (number + 1) / count)
        os.kill(process, signal.SIGKILL)
        ends.append(outcome(process, reading))
else:
    ends = [outcome(*each) for each in [child(cache) for _ in range(count)]]
after = [outcome(*child(cache)) for _ in range(2)]
killed = [end for end in ends if isinstance(end, int)]
wrong = [end for end in [*ends, *after] if not isinstance(end, int) and end[0] != stock]
print(json.dumps([len(killed), len(wrong), after[-1][1]]))
"""


def _run(run_script, tmp_path, how, count):
    from pathlib import Path

    root = Path(__file__).parents[2]
    script = SCRIPT.format(path=[str(root / "src"), str(root)])
    return run_script(script, str(tmp_path / "cache"), how, str(count))


def test_killed_at_its_files(run_script, tmp_path):
    killed, wrong, last = _run(run_script, tmp_path, "files", 3)
    assert killed >= 2
    assert (wrong, last) == (0, {"restored": 1}), run_script.stderr
    assert "damaged" not in run_script.stderr


@pytest.mark.slow
def test_killed_forty_times(run_script, tmp_path):
    killed, wrong, last = _run(run_script, tmp_path, "times", 40)
    assert killed >= 20
    assert (wrong, last) == (0, {"restored": 1}), run_script.stderr
    assert "damaged" not in run_script.stderr


@pytest.mark.slow
def test_six_at_once(run_script, tmp_path):
    killed, wrong, last = _run(run_script, tmp_path, "at once", 6)
    assert (killed, wrong, last) == (0, 0, {"restored": 1})
    assert "damaged" not in run_script.stderr
