"""What `glowplug profile` prints for programs that start slowly, grow in a loop, or are tidy. Real processes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import Run

pytest.importorskip("rich")

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
TARGETS = ROOT / "tests" / "probe" / "targets"


def words_of(run: Run, *arguments: object) -> str:
    """Return what the command printed as one line of words, wherever lines were broken."""
    done = run("profile", *arguments)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stderr.split())


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def test_a_training_run_names_the_double_trace_and_its_cost(run: Run) -> None:
    script = ROOT / "examples" / "startup" / "slow_first_step.py"
    words = words_of(run, script)
    at = f"slow_first_step.py:{line_of(script, 'model.fit(')}"
    twice = r"one_step_on_data was traced twice for its first step: ([\d.]+) s and then ([\d.]+) s"
    found = re.search(rf"{twice} at saves ([\d.]+) s \S*{at}", words)
    assert found, words
    first, second, saves = map(float, found.groups())
    assert saves >= second > 0
    assert first > second


def test_the_loop_of_tensorflow_1_names_growth_line_and_slope(run: Run) -> None:
    script = TARGETS / "tf1_loop.py"
    words = words_of(run, script, 200)
    at = f"tf1_loop.py:{line_of(script, 'weights = tf.get_variable')}"
    assert re.search(rf"The graph grows by 16 operations in each of 200 rounds; most are added at \S*{at}", words), (
        words
    )
    assert re.search(r"[\d.]+ (ms|us|µs) a round", words), words


def test_building_models_in_a_loop_names_the_slope_of_memory(run: Run) -> None:
    words = words_of(run, TARGETS / "keras_rebuild.py", 8)
    assert re.search(r"Memory grows by [\d.]+ MB in each of 8 rounds that build a model at \S*keras_rebuild.py", words)


def test_a_program_with_nothing_to_gain_is_told_so(run: Run, tmp_path: Path) -> None:
    saved = tmp_path / "profile.json"
    words = words_of(run, "-o", saved, "-c", "import json")
    assert "Findings none found" in words
    assert '"findings":[]' in saved.read_text()
