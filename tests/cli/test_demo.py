"""`glowplug demo`: the tour ends with a table, and can be kept."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.tensorflow]


@pytest.mark.core
def test_the_tour(run, tmp_path):
    kept = tmp_path / "tour"
    done = run("demo", "--rounds", "1", "--keep", kept, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["times_sooner"] > 1
    assert result["largest_difference"] <= 1e-5
    assert result["medians"]["stock"]["first_result_ns"] > result["medians"]["glowplug"]["first_result_ns"]
    assert sorted(path.name for path in kept.iterdir()) == [
        "build_model.py",
        "fast.py",
        "model.glow",
        "saved_model",
        "stock.py",
    ]
    assert "kept in" in done.stderr


def test_the_tour_does_not_overwrite(call, tmp_path):
    (tmp_path / "mine").write_text("precious")
    code, _, err = call("demo", "--keep", tmp_path)
    assert code == 2
    assert "exists already" in err
    assert (tmp_path / "mine").read_text() == "precious"


def test_a_tour_of_no_rounds(call):
    code, _, err = call("demo", "--rounds", "0")
    assert code == 2
    assert "at least one round" in err


def test_the_table(capsys):
    from glowplug.cli.demo import _print, _result

    def record(first, steady, answer):
        return {"first_result_ns": first, "steady_ns": steady, "max_rss_bytes": 10**8, "answer": answer}

    rounds = {
        "stock": [record(n * 10**9, 2000, [0.5, 0.25]) for n in (3, 5, 4)],
        "glowplug": [record(5 * 10**8, 1000, [0.5, 0.25])] * 1,
    }
    result = _result(rounds)
    assert result["times_sooner"] == 8
    assert result["largest_difference"] == 0
    _print(result, 3)
    out = capsys.readouterr().out
    assert "process start to first prediction  4.00 s   500 ms" in out
    assert "8.0 times sooner" in out
