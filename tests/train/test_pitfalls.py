"""Programs that look alike and are not: the right result every time, in whatever order they use one cache.

Each run is a child forked from a warm process, as a standby's are; `pitfall_runner` says how. There are seven files of
cases, and one of tests for each, only so that they run side by side.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.train.pitfall_cases import GROUPS, check, names_in

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_program_gets_the_trace_of_another(group, tmp_path):
    check(names_in("pitfalls.py")[group::GROUPS], tmp_path)


def test_there_are_enough_cases():
    files = [file.name for file in Path(__file__).parent.glob("pitfalls*.py")]
    assert len(files) == 7
    names = [name for file in files for name in names_in(file)]
    assert len(names) == len(set(names)) >= 150
