"""`glowplug predict`: files in, files out."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytestmark = [pytest.mark.tensorflow]

ANSWER = np.ones((2, 3), np.float32) @ np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.core
def test_predict_prints_outputs_and_timing(call, shared_bundle, x_file):
    code, out, err = call("predict", shared_bundle, "--input", x_file, "--repeat", 3)
    assert (code, err) == (0, "")
    first, timing = out.splitlines()
    assert first.startswith("y: float32[2, 4] = 12, 15, 18, 21, 12, 15, ... (min 12, max 21")
    assert [part.split()[0] for part in timing.split(", ")] == ["load", "first", "steady"]
    assert "median of 3" in timing


@pytest.mark.core
def test_predict_needs_no_tensorflow_in_python(run, shared_bundle, x_file, environment):
    done = run("predict", shared_bundle, "--input", f"x={x_file}", "--json", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    assert np.array_equal(json.loads(done.stdout)["outputs"]["y"]["values"], ANSWER)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "numpy" in imported
    assert not {"tensorflow", "keras"} & imported


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".json"])
def test_outputs_go_to_a_file(call, shared_bundle, x_file, tmp_path, suffix):
    target = tmp_path / f"answer{suffix}"
    assert call("predict", shared_bundle, "--input", x_file, "--output", target)[0] == 0
    if suffix == ".json":
        value = np.asarray(json.loads(target.read_text())["y"], np.float32)
    else:
        loaded = np.load(target, allow_pickle=False)
        value = loaded if suffix == ".npy" else loaded["y"]
    assert value.dtype == np.float32
    assert np.array_equal(value, ANSWER)


def test_an_existing_output_is_refused_before_any_work(call, tmp_path):
    target = tmp_path / "answer.npy"
    target.write_bytes(b"precious")
    code, _, err = call("predict", tmp_path / "no-such-bundle", "--output", target)
    assert code == 2
    assert "--force" in err
    assert target.read_bytes() == b"precious"


def test_force_replaces_the_output(call, shared_bundle, x_file, tmp_path):
    target = tmp_path / "answer.npy"
    target.write_bytes(b"old")
    assert call("predict", shared_bundle, "--input", x_file, "--output", target, "--force")[0] == 0
    assert np.array_equal(np.load(target), ANSWER)


@pytest.fixture
def repeat_inputs(tmp_path):
    (tmp_path / "text.json").write_text('["ab", {"b64": "/w=="}, ""]')
    (tmp_path / "count.json").write_text("[1, 2, 3]")
    return ["--input", f"text={tmp_path / 'text.json'}", "--input", f"count={tmp_path / 'count.json'}"]


@pytest.mark.core
def test_several_inputs_several_outputs_and_strings(call, shared_bundle, repeat_inputs):
    code, out, _ = call("predict", shared_bundle, "--signature", "repeat", *repeat_inputs, "--json")
    outputs = json.loads(out)["outputs"]
    assert code == 0
    assert outputs["length"] == {"dtype": "int64", "shape": [3], "values": [2, 2, 0]}
    assert outputs["upper"] == {"dtype": "string", "shape": [3], "values": ["AB", {"b64": "/w=="}, ""]}


def test_several_outputs_do_not_fit_into_an_npy_file(call, shared_bundle, repeat_inputs, tmp_path):
    target = tmp_path / "answer.npy"
    code, _, err = call("predict", shared_bundle, "--signature", "repeat", *repeat_inputs, "--output", target)
    assert code == 2
    assert "an .npz file" in err
    assert not target.exists()


def test_numbers_in_json_take_the_dtype_of_the_signature(call, shared_bundle, tmp_path):
    path = tmp_path / "x.json"
    path.write_text('[[1, 2.5, "NaN"]]')
    code, out, _ = call("predict", shared_bundle, "--input", path, "--json")
    assert code == 0
    assert json.loads(out)["outputs"]["y"] == {"dtype": "float32", "shape": [1, 4], "values": [["NaN"] * 4]}


def write(path, array):
    np.save(path, array)
    return path


@pytest.mark.parametrize(
    ("make", "code", "message"),
    [
        (lambda folder: [], 3, "missing 'x'"),
        (lambda folder: ["--input", folder / "none.npy"], 2, "there is no such input file"),
        (lambda folder: ["--input", folder / "x.txt"], 2, "an input file is .npy or .json"),
        (lambda folder: ["--input", f"z={write(folder / 'z.npy', np.ones(3))}"], 3, "unknown 'z'"),
        (lambda folder: ["--input", write(folder / "d.npy", np.ones((1, 3)))], 3, "must be float32[?, 3], not float64"),
        (lambda folder: ["--input", write(folder / "o.npy", np.array([{}]))], 3, "it holds Python objects"),
        (lambda folder: ["--signature", "other"], 3, "it has repeat, serving_default"),
        (lambda folder: ["--output", folder / "y.txt"], 2, "an output file is .npy, .npz or .json"),
    ],
)
def test_bad_input_is_one_line(call, shared_bundle, tmp_path, make, code, message):
    seen, out, err = call("predict", shared_bundle, *make(tmp_path))
    assert (seen, out) == (code, "")
    assert err.startswith("glowplug: ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.core
def test_a_shape_that_tensorflow_refuses_is_one_line_too(run, shared_bundle, tmp_path):
    done = run("predict", shared_bundle, "--input", write(tmp_path / "s.npy", np.ones((1, 5), "f4")))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("glowplug: ")
    assert done.stderr.count("\n") == 1
    assert "(x: float32[?, 3])" in done.stderr


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00", b"PK\x03\x04"])
def test_a_damaged_npy_file(call, shared_bundle, tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    code, _, err = call("predict", shared_bundle, "--input", tmp_path / "x.npy")
    assert code == 3
    assert "the input file cannot be read" in err


@pytest.mark.parametrize("content", ["", "[1,", '[{"a": 1}]', "[[1, 2], [3]]", '["b"]'])
def test_a_damaged_json_file(call, shared_bundle, tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    code, _, err = call("predict", shared_bundle, "--input", tmp_path / "x.json")
    assert code == 3, err
    assert err.count("\n") == 1


def test_an_input_given_twice(call, shared_bundle, x_file):
    code, _, err = call("predict", shared_bundle, "--input", x_file, "--input", x_file)
    assert code == 2
    assert "given twice: x" in err


def test_an_input_without_a_name_among_several(call, shared_bundle, x_file):
    code, _, err = call("predict", shared_bundle, "--signature", "repeat", "--input", x_file)
    assert code == 2
    assert "NAME=FILE" in err
