"""`glowplug bench` as its users run it."""

from __future__ import annotations

import json

import pytest

QUICK = ("--repeat", "1", "--seconds", "0.01")


@pytest.mark.tensorflow
def test_a_benchmark_has_a_row_for_everyone_who_takes_part(run, tiny_model, tmp_path):
    words = (
        "--against",
        "openvino",
        "--environments",
        tmp_path,
        "--html",
        tmp_path / "b.html",
        "-o",
        tmp_path / "b.json",
    )
    done = run("bench", tiny_model, *QUICK, *words, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document == json.loads((tmp_path / "b.json").read_text())
    rows = {row["name"]: row for row in document["rows"]}
    assert list(rows) == ["tensorflow", "openvino", "glowplug-native", "glowplug-litert", "glowplug-savedmodel"]
    for name in ("tensorflow", "glowplug-native", "glowplug-savedmodel"):
        row = rows[name]
        assert row["outcome"] == "measured", row["reason"]
        assert row["difference"] == 0.0
        assert len(row["first_ns"]) == 1
        assert row["disk_bytes"] > 0
        assert row["install_bytes"] > 100_000_000
        assert row["second_pss_bytes"] > 0
    assert rows["openvino"]["outcome"] in ("absent", "measured", "failed")
    assert document["chosen"].removeprefix("glowplug-") in ("native", "litert")
    assert "Process start to first prediction" in (tmp_path / "b.html").read_text()


@pytest.mark.tensorflow
def test_the_table_and_the_files_that_exist_already(run, tiny_model, tmp_path):
    there = tmp_path / "b.html"
    there.write_text("mine")
    done = run("bench", tiny_model, "--html", there)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert there.read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [(("--against", "onnx"), 2, "no such peer"), ((), 2, "there is no such model")],
)
def test_wrong_usage_is_one_line(call, tmp_path, words, code, text):
    done, out, err = call("bench", tmp_path / "missing", *words)
    assert (done, out) == (code, "")
    assert text in err
    assert len(err.splitlines()) == 1


@pytest.mark.tensorflow
def test_a_model_that_no_input_suits_says_what_to_do(run, tiny_model):
    done = run("bench", tiny_model, *QUICK, "--signature", "other")
    assert done.returncode == 2
    assert "it has" in done.stderr
