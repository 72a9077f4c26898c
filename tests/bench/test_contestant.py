"""One process of a contestant: its answers, its figures, and every way in which it can let us down."""

from __future__ import annotations

import os

import numpy as np
import pytest

from glowplug.bench.contestant import ContestantError, Running


@pytest.mark.tensorflow
def test_a_process_answers_keeps_answering_and_ends(bundle_of, question):
    with Running(bundle_of("twice"), question, threads=2, limit_s=120) as running:
        assert 0 < running.loaded_ns < running.first_ns
        assert np.array_equal(running.answers()["y"], np.full((1, 4), 2, np.float32))
        latency, rate = running.steady(0.01, callers=2)
        assert latency > 0
        assert rate > 0
        memory = running.memory()
        assert 0 < memory.private_bytes <= memory.pss_bytes <= memory.peak_rss_bytes
        process = running._process.pid
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.tensorflow
def test_what_a_model_refuses_is_told_in_one_line(bundle_of, question):
    from dataclasses import replace

    with pytest.raises(ContestantError, match="no such signature"):
        Running(bundle_of("twice"), replace(question, signature="other"), threads=1, limit_s=120)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("kill -ILL $$", "crashed with SIGILL"),
        ("echo cannot find it >&2; kill -SEGV $$", "crashed with SIGSEGV after saying: cannot find it"),
        ("echo first >&2; echo '  the last   line' >&2; exit 3", "the last line"),
        ("exit 3", "exit code 3"),
        ("echo hello; cat", "no answer, but"),
        ("echo 5; cat", "no answer, but"),
    ],
)
def test_a_process_without_an_answer_says_why(faulty, question, script, words):
    with pytest.raises(ContestantError, match=words):
        Running(faulty(script), question, threads=1, limit_s=60)


def test_a_process_that_hangs_is_ended(faulty, question):
    with pytest.raises(ContestantError, match="no answer within"):
        Running(faulty("exec cat"), question, threads=1, limit_s=0.2)


def test_a_process_that_dies_while_it_is_looked_at_is_told_of(faulty, question):
    report = '{"first_at_ns": 1, "loaded_at_ns": 1}'
    with Running(faulty(f"echo '{report}'; kill -SEGV $$"), question, threads=1, limit_s=60) as running:
        running._process.wait()
        with pytest.raises(ContestantError, match="crashed with SIGSEGV"):
            running.memory()
