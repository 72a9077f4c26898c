"""`glowplug demo`: the tour ends with a table, and can be kept."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

pytestmark = [pytest.mark.tensorflow]


@pytest.mark.core
def test_the_tour(run, tmp_path):
    kept = tmp_path / "tour"
    done = run("demo", "--quick", "--keep", kept, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert "predicts_with_stock_tensorflow" in result["findings"]
    assert result["run"]["same_loss"]
    assert min(result["run"][f"{kind}_ns"] for kind in ("stock", "first", "second")) > 0
    if find_spec("httptools"):
        assert 0 < result["serve"]["ready_ns"] < result["serve"]["answered_ns"]
    else:
        assert "pip install" in result["serve"]
    assert result["times_sooner"] > 1
    assert result["largest_difference"] <= 1e-5
    assert result["medians"]["stock"]["first_result_ns"] > result["medians"]["glowplug"]["first_result_ns"]
    assert sorted(path.name for path in kept.iterdir()) == [
        "build_model.py",
        "fast.py",
        "model.glow",
        "saved_model",
        "stock.json",
        "stock.py",
        "train.py",
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
    from glowplug.cli.demo import _print, _print_more, _result

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
    run = {"stock_ns": 9 * 10**9, "first_ns": 8 * 10**9, "second_ns": 3 * 10**9, "times_sooner": 3.0, "same_loss": True}
    _print_more({"serve": {"ready_ns": 10**9, "answered_ns": 1_100_000_000}, "run": run})
    out = capsys.readouterr().out
    assert "was ready after 1.00 s, and had answered over REST after 1.10 s" in out
    assert "stock Python 9.00 s; under run 8.00 s the first time, 3.00 s from the second time on" in out
    _print_more(
        {"serve": "glowplug serve needs hpack: pip install 'glowplug[serve]'", "run": {**run, "same_loss": False}}
    )
    assert "DIFFERS" in capsys.readouterr().out
