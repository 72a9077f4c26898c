"""Comparing: what stands out of the noise is called, what does not is not."""

from __future__ import annotations

import dataclasses
import random

import pytest

from glowplug.core.profile import PHASES, Profile, Runs
from glowplug.report.compare import FASTER, SAME, SLOWER, UNKNOWN, compare, encode_comparison
from glowplug.report.comparison import comparison_lines
from glowplug.report.lines import line_text

from . import profiles

MS = profiles.MS


def repeated(imports_ms: list[float], others_ms: float = 1_000) -> Profile:
    """A profile whose import phase took these times over its runs."""
    imports = tuple(round(value * MS) for value in imports_ms)
    rest = round(others_ms * MS)
    walls = tuple(value + rest for value in imports)
    phases = {**dict.fromkeys(PHASES, 0), "import": sorted(imports)[len(imports) // 2], "first_step": rest}
    runs = Runs(walls, {"import": imports, "first_step": (rest,) * len(imports)}) if len(imports) > 1 else None
    return Profile(("t.py",), 0, sorted(walls)[len(walls) // 2], {}, (), phases, runs=runs)


def verdict(before: list[float], after: list[float]) -> str:
    comparison = compare(repeated(before), repeated(after))
    return next(change.verdict for change in comparison.phases if change.name == "import")


def test_a_clear_change_is_called() -> None:
    assert verdict([3000, 3040, 2980, 3010, 3020], [1500, 1520, 1490, 1510, 1500]) == FASTER
    assert verdict([1500, 1520, 1490, 1510, 1500], [3000, 3040, 2980, 3010, 3020]) == SLOWER


def test_a_change_within_the_spread_is_not() -> None:
    assert verdict([3000, 3400, 2700, 3100, 2900], [2950, 3300, 2650, 3050, 2800]) == SAME


def test_one_run_each_cannot_tell() -> None:
    comparison = compare(repeated([3000]), repeated([1500]))
    assert comparison.total.verdict == UNKNOWN
    assert comparison.total.noise_ns is None
    assert "--repeat" in comparison.notes[0]


def test_one_run_against_repeats_uses_the_spread_it_has() -> None:
    assert verdict([3000, 3040, 2980, 3010, 3020], [1500]) == FASTER
    assert verdict([3000, 3040, 2980, 3010, 3020], [3050]) == SAME


def test_below_a_millisecond_nothing_is_called() -> None:
    assert verdict([10.0, 10.0, 10.0], [10.9, 10.9, 10.9]) == SAME
    assert verdict([10.0, 10.0, 10.0], [11.5, 11.5, 11.5]) == SLOWER


@pytest.mark.parametrize("runs", [3, 5, 7])
def test_false_alarms_are_rare(runs: int) -> None:
    chance = random.Random(runs)
    alarms = 0
    for _ in range(1000):
        before, after = ([chance.gauss(3000, 90) for _ in range(runs)] for _ in range(2))
        alarms += verdict(before, after) != SAME
    assert alarms <= 30  # 1 % of a thousand, with room for medians and chance


def test_phases_sum_like_the_profiles_and_absent_ones_are_left_out() -> None:
    comparison = compare(profiles.training(), profiles.training())
    assert {change.name for change in comparison.phases} == {
        name for name, ns in profiles.training().phases.items() if ns
    }
    assert all(change.verdict == SAME for change in (*comparison.phases, comparison.total))
    assert not comparison.slower


def test_counts_and_warnings() -> None:
    before = profiles.training()
    after = dataclasses.replace(
        before,
        command=("other.py",),
        exit_code=1,
        environment={**before.environment, "modules": 2469, "page_cache": "dropped"},
    )
    comparison = compare(before, after)
    assert [(count.name, count.before, count.after) for count in comparison.counts[:1]] == [
        ("modules imported", 2843, 2469)
    ]
    notes = " ".join(comparison.notes)
    assert "commands differ" in notes
    assert "warm and dropped" in notes
    assert "exit 0 and 1" in notes


def test_json_form() -> None:
    encoded = encode_comparison(compare(repeated([3000]), repeated([1500])))
    assert encoded["total"]["delta_ns"] == -1500 * MS
    assert encoded["total"]["verdict"] == UNKNOWN
    assert encoded["before_runs"] == 1


def test_table() -> None:
    before, after = [3000.0, 3040, 2980, 3010, 3020], [1500.0, 1520, 1490, 1510, 1500]
    lines = [line_text(line) for line in comparison_lines(compare(repeated(before), repeated(after)), 80)]
    row = next(line for line in lines if line.startswith("import"))
    # Welch: sqrt(500/5 + 130/5) ms, 5.9 degrees of freedom, t = 4.032
    assert row.split() == ["import", "3.01", "s", "1.50", "s", "-1.51", "s", "45.3", "ms", "faster", "2.0x"]
    assert max(map(len, lines)) <= 80
