"""`glowplug pack` as its users run it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from glowplug.bundle.reader import open_bundle

pytestmark = [pytest.mark.tensorflow]


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir() if "partial" in path.name)


@pytest.mark.core
def test_pack_tells_what_it_made_and_shows_its_stages(run, tiny_model, tmp_path):
    done = run("pack", tiny_model, "-o", tmp_path / "b.glow")
    assert done.returncode == 0
    assert "native bundle" in done.stdout
    assert "serving_default(x: float32[?, 3]) -> (y: float32[?, 4])" in done.stdout
    assert "equal to its source" in done.stdout
    stages = done.stderr.splitlines()
    assert [line.split()[0] for line in stages[:2]] == ["import", "read"]
    assert all(line.split()[-1] in ("s", "ms", "us") for line in stages)
    assert leftovers(tmp_path) == []


def test_pack_as_json_with_warmup_and_force(run, tiny_model, tiny_bundle, tmp_path):
    np.savez(tmp_path / "w.npz", x=np.ones((4, 3), np.float32))
    done = run(
        "pack", "--prefer", "any", tiny_model, "-o", tiny_bundle, "--warmup", tmp_path / "w.npz", "--force", "--json"
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["manifest"]["engine"] == "native"
    assert document["reason"] is None
    assert document["stages_ns"]["convert"] > 0
    assert document["bytes"] == sum(one["size"] for one in document["manifest"]["files"].values())
    assert [path.name for path in open_bundle(tiny_bundle).warmup_files] == ["0000.json"]


def test_an_existing_output_is_not_touched_without_force(call, tiny_model, tiny_bundle):
    before = (tiny_bundle / "bundle.json").read_bytes()
    code, out, err = call("pack", tiny_model, "-o", tiny_bundle)
    assert (code, out) == (2, "")
    assert err.startswith("glowplug: the output exists already")
    assert "--force" in err
    assert (tiny_bundle / "bundle.json").read_bytes() == before


@pytest.mark.parametrize(("content", "code"), [(None, 2), (b"nothing of the kind", 3)])
def test_what_is_no_model_leaves_nothing_behind(run, tmp_path, content, code):
    source = tmp_path / "model.keras"
    if content is not None:
        source.write_bytes(content)
    done = run("pack", source, "-o", tmp_path / "b.glow")
    assert done.returncode == code
    assert done.stdout == ""
    message = done.stderr.splitlines()[-1]
    assert message.startswith("glowplug: ")
    assert "model.keras" in message
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ([] if content is None else ["model.keras"])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_pack_leaves_nothing_behind(environment, tiny_model, tmp_path, number, code):
    command = [
        sys.executable,
        "-m",
        "glowplug",
        "pack",
        "--prefer",
        "any",
        str(tiny_model),
        "-o",
        str(tmp_path / "b.glow"),
    ]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "import TensorFlow" in process.stderr.readline()  # written when this stage has ended: it is at work
    assert len(leftovers(tmp_path)) == 1
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    # Interrupted inside an `exec` of some import, Python ends by the signal itself: a shell shows the same code.
    assert process.returncode in (code, -number), err
    assert out == ""
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_no_temporary_files_are_left(run, environment, tmp_path):
    """TensorFlow writes generated code there, and removes it only in processes that end by themselves."""
    build = "import keras, sys; keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]).save(sys.argv[1])"
    command = [sys.executable, "-c", build, tmp_path / "m.keras"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    (tmp_path / "temporary").mkdir()
    target = tmp_path / "m.glow"
    done = run("pack", tmp_path / "m.keras", "-o", target, "--engine", "native", TMPDIR=str(tmp_path / "temporary"))
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "temporary").iterdir()) == []
    assert {one.name for one in target.iterdir()} == {"bundle.json", *open_bundle(target).manifest.files}


def test_names_that_are_patterns(run, tiny_model, x_file, tmp_path):
    """TensorFlow takes a path of a checkpoint for a pattern of names."""
    source = shutil.copytree(tiny_model, tmp_path / "[model]*?")
    for engine in ("native", "savedmodel"):
        target = tmp_path / f"{engine} [x].glow"
        done = run("pack", source, "-o", target, "--engine", engine)
        assert done.returncode == 0, done.stderr
        assert run("predict", target, "--input", x_file).returncode == 0
