"""What happens in a process of its own is an answer, whatever it is, and comes in time."""

from __future__ import annotations

import os

import pytest

from glowplug.convert import isolated
from glowplug.core.errors import OutputMismatchError, RuntimeFailure, UnsupportedModelError


def call(name: str, seconds: float = 60.0, **argument: object) -> object:
    return isolated.call(f"tests.convert.isolated_functions:{name}", argument, stage="try", seconds=seconds)


def test_the_result_comes_back() -> None:
    argument, pid = call("echo", value=[1, "two"])
    assert argument == {"value": [1, "two"]}
    assert pid != os.getpid()


def test_it_shares_the_processors_of_its_caller_s_session() -> None:
    """Linux gives a session of its own a share of its own, however low its priority; signals of a group pass it by."""
    session, group = call("session_and_group")  # type: ignore[misc]
    assert session == os.getsid(0)
    assert group != os.getpgid(0)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGILL"])
def test_a_death_is_a_fault_of_the_model(name: str) -> None:
    with pytest.raises(UnsupportedModelError, match=rf"LiteRT died on this model: {name} at the stage 'try'"):
        call("die", signal=name)


def test_a_process_that_the_system_killed_says_so() -> None:
    with pytest.raises(RuntimeFailure, match="killed"):
        call("die", signal="SIGKILL")


def test_what_hangs_is_ended() -> None:
    with pytest.raises(UnsupportedModelError, match=r"too long .* more than 1 s"):
        call("hang", seconds=1.0)


def test_errors_are_the_callers_own() -> None:
    with pytest.raises(UnsupportedModelError, match="ZeroDivisionError: something unforeseen"):
        call("fail")
    with pytest.raises(OutputMismatchError) as caught:
        call("refuse")
    assert (caught.value.what, caught.value.seen, caught.value.remedy) == ("they differ", "by much", "look")
