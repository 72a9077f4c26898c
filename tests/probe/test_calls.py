"""The call tree of a program's own code: whose time it was, by function, with what it called."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.probe.profiling import check

from glowplug.core.profile import Profile, Span
from glowplug.probe.calls import user_calls
from glowplug.probe.events import FACT, Image
from glowplug.probe.run import profile_target

# Each function works until it was looked at often enough; how long that takes is the machine's affair.
PROGRAM = """\
import os, statistics, sys, threading, time

def work(rounds):
    for _ in range(rounds):
        sum(range(20_000))

def prepare():
    work(ROUNDS)
    for _ in range(ROUNDS):
        statistics.fmean(range(20_000))

def main():
    prepare()
    time.sleep(0.2)
    print(threading.active_count(), len(threading.enumerate()))

if __name__ == "__main__":
    ROUNDS = int(sys.argv[1])
    main()
"""


def profiled(tmp_path: Path, *, calls: bool) -> Profile:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    profile = profile_target([str(path), "600"], calls=calls)
    check(profile)
    assert profile.exit_code == 0
    return profile


def test_the_tree_of_a_program(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    profile = profiled(tmp_path, calls=True)
    names = [(call.depth, call.function) for call in profile.calls]
    assert names[:3] == [(0, "<module>"), (1, "main"), (2, "prepare")]
    assert (3, "work") in names
    assert (3, "statistics.fmean") in names
    by_name = {call.function: call for call in profile.calls}
    assert by_name["work"].site == f"{tmp_path / 'program.py'}:5"
    assert by_name["work"].own_ns == by_name["work"].ns
    assert by_name["statistics.fmean"].site == ""
    parts = by_name["work"].ns + by_name["statistics.fmean"].ns
    assert by_name["prepare"].ns >= parts - 2  # each is rounded on its own
    # The sleep is in another phase, so it is nobody's own time.
    assert by_name["<module>"].ns == pytest.approx(profile.phases["user_code"], rel=0.01)
    assert capfd.readouterr().out == "1 1\n"


def test_nobody_looks_unasked(tmp_path: Path) -> None:
    assert profiled(tmp_path, calls=False).calls == ()


def look(at_ns: int, number: int) -> tuple[object, ...]:
    return FACT, "calls_look", (at_ns, number)


def test_looks_share_the_time_that_was_the_programs() -> None:
    main = Span(1, None, 7, 7, "user_code", "__main__", 0, 1000, {"kind": "main"})
    imported = Span(2, 1, 7, 7, "import", "numpy", 100, 500, {"kind": "module"})
    top, inner, rare = ["a.py", "main", 1, 9], ["a.py", "inner", 3, 4], ["a.py", "rare", 5, 6]
    stacks = [(FACT, "calls_stack", (0, [top])), (FACT, "calls_stack", (1, [top, inner]))]
    stacks.append((FACT, "calls_stack", (2, [top, rare])))
    looks = [look(1_000_000 + at, 1) for at in range(1, 100)]
    looks += [look(1_000_000 + at, 0) for at in range(501, 801)]
    looks += [look(1_000_900, 2)]  # less than a hundredth: it is in its caller's own time
    looks += [look(1_000_200, 1)] * 50  # while something was imported
    image = Image(7, 1_000_000, (*stacks, *looks))
    calls = user_calls([image], [main, imported], 1_000_000)
    assert [(call.depth, call.function, call.site) for call in calls] == [(0, "main", "a.py:9"), (1, "inner", "a.py:4")]
    assert [call.ns for call in calls] == [600, round(600 * 99 / 400)]
    assert calls[0].own_ns == round(600 * 301 / 400)
    assert user_calls([], [main], 0) == ()
