"""Programs that look alike and are not: the right result every time, in whatever order they use one cache.

Each run is a child forked from a warm process, as a standby's are; `pitfall_runner` says how. The files of cases run
side by side: `make test-pitfalls`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.train.pitfall_cases import check, names_in

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(1800)]
FILES = sorted(file.name for file in Path(__file__).parent.glob("pitfalls*.py"))


@pytest.mark.pitfalls
@pytest.mark.parametrize("file", FILES)
def test_no_program_gets_the_trace_of_another(file, tmp_path):
    check(names_in(file), tmp_path)


def test_some_of_every_file(tmp_path):
    """One in thirty, wherever the others are not run."""
    check([name for file in FILES for name in names_in(file)[::30]], tmp_path)


def test_there_are_enough_cases():
    names = [name for file in FILES for name in names_in(file)]
    assert len(FILES) == 10
    assert len(names) == len(set(names)) >= 600
