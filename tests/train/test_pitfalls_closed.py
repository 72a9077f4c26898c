"""Programs that differ in what stock objects keep to themselves, and in orders and identities: see `test_pitfalls`."""

from __future__ import annotations

import pytest

from tests.train.pitfall_cases import GROUPS, check, names_in

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_program_gets_the_trace_of_another(group, tmp_path):
    check(names_in("pitfalls_closed.py")[group::GROUPS], tmp_path)
