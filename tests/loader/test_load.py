"""`glowplug.load`: calls, threads, zero copies, closing, trust, and what is refused."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import glowplug
from glowplug.bundle.reader import open_bundle
from glowplug.core import errors
from glowplug.loader.engines.engine import Options
from glowplug.loader.open import open_engine
from glowplug.runtime.config import CALLERS_THREAD

pytestmark = [pytest.mark.tensorflow, pytest.mark.core]

Bundles = Callable[[str], Path]


def test_one_input_one_output(bundle: Bundles) -> None:
    with glowplug.load(bundle("dense")) as model:
        x = np.ones((2, 16), np.float32)
        y = model(x)
        assert isinstance(y, np.ndarray)
        name = next(iter(model.signatures["serving_default"].inputs))
        for same in (model({name: x}), model(**{name: x}), model(x.tolist()), model.signature("serve")(x)):
            np.testing.assert_array_equal(same, y)
        assert model.engine == "native"
        assert model.info.provenance["source"] == "SavedModel"
        assert "float32[?, 16]" in repr(model)


def test_two_inputs_two_outputs(bundle: Bundles) -> None:
    with glowplug.load(bundle("two_in_two_out")) as model:
        a, b = np.ones((3, 4), np.float32), np.ones((3, 6), np.float32)
        assert {key: value.shape for key, value in model({"a": a, "b": b}).items()} == {"left": (3, 2), "right": (3, 1)}
        assert set(model(b=b, a=a)) == {"left", "right"}


def test_what_comes_out_can_be_asked_for_by_kind(bundle: Bundles) -> None:
    with glowplug.load(bundle("dense")) as model:
        x = np.ones((2, 16), np.float32)
        (name,) = model.signatures["serving_default"].outputs
        for same in (model.array(x), model.arrays(x)[name], model.signature("serve").array(x)):
            np.testing.assert_array_equal(same, model(x))
    with glowplug.load(bundle("two_in_two_out")) as model:
        given = {"a": np.ones((3, 4), np.float32), "b": np.ones((3, 6), np.float32)}
        assert set(model.arrays(given)) == set(model.arrays(**given)) == {"left", "right"}
        with pytest.raises(errors.InputError, match=r"has not one output.*left, right.*arrays\(\)"):
            model.array(given)


def test_weights_are_not_copied(bundle: Bundles) -> None:
    """By pointer: each tensor lies in the map. By count: TensorFlow gives none back before the model closes."""
    for name in ("conv_bn", "lstm", "attention"):
        model = glowplug.load(bundle(name))
        engine = model._engine
        offsets = [tensor.offset for tensor in _manifest(bundle(name)).tensors]
        assert [weight.address - engine.memory.address for weight in engine.weights] == offsets
        for _ in range(3):
            model({key: _sample(port.spec) for key, port in model.signatures["serving_default"].inputs.items()})
        assert (engine.memory.lent, engine.memory.released) == (len(offsets), 0)
        model.close()
        assert engine.memory.released == len(offsets)


def _manifest(path: Path):  # type: ignore[no-untyped-def]
    return open_bundle(path).manifest


def _sample(spec) -> np.ndarray:  # type: ignore[no-untyped-def]
    shape = [2 if size is None else size for size in spec.shape]
    return np.full(shape, b"one", object) if spec.dtype == "string" else np.ones(shape, spec.dtype)


def test_two_processes_share_the_weights(bundle: Bundles) -> None:
    """The weights' pages are mapped from the file, so no process has them privately."""
    code = """
import sys, numpy as np, glowplug
model = glowplug.load(sys.argv[1])
model(np.ones((1, 128, 128, 3), np.float32))
private = mapped = inside = 0
for line in open('/proc/self/smaps'):
    if line[0] in '0123456789abcdef' and '-' in line.split()[0]: inside = 'weights.bin' in line
    elif inside and line.startswith('Rss'): mapped += int(line.split()[1])
    elif inside and line.startswith(('Private_Dirty', 'Anonymous')): private += int(line.split()[1])
print(mapped, private)
"""
    directory = bundle("MobileNetV2")
    import os

    os.sync()
    done = subprocess.run([sys.executable, "-c", code, str(directory)], capture_output=True, text=True, check=True)
    mapped, private = map(int, done.stdout.split())
    assert mapped > 5_000
    assert private == 0


def test_many_threads(bundle: Bundles) -> None:
    with glowplug.load(bundle("conv_bn")) as model:
        inputs = [np.random.default_rng(seed).normal(size=(2, 32, 32, 3)).astype("float32") for seed in range(8)]
        expected = [model(x) for x in inputs]
        with ThreadPoolExecutor(8) as pool:
            for _ in range(5):
                for seen, wanted in zip(pool.map(model, inputs), expected, strict=True):
                    np.testing.assert_allclose(seen, wanted, rtol=1e-5, atol=1e-6)


def test_many_threads_of_the_savedmodel_engine(saved_model: Bundles, tmp_path: Path) -> None:
    glowplug.pack(saved_model("conv_bn"), tmp_path / "m.glow", engine="savedmodel")
    with glowplug.load(tmp_path / "m.glow", trust=True) as model:
        inputs = [np.random.default_rng(seed).normal(size=(2, 32, 32, 3)).astype("float32") for seed in range(8)]
        expected = [model(x) for x in inputs]
        with ThreadPoolExecutor(8) as pool:
            for seen, wanted in zip(pool.map(model, inputs), expected, strict=True):
                np.testing.assert_allclose(seen, wanted, rtol=1e-5, atol=1e-6)


def test_calls_release_the_interpreter_lock(bundle: Bundles) -> None:
    ticks = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1

    with glowplug.load(bundle("MobileNetV2")) as model:
        x = np.ones((16, 128, 128, 3), np.float32)
        model(x)
        thread = threading.Thread(target=count)
        thread.start()
        model(x)
        stop.set()
        thread.join()
    assert ticks > 1000


def test_answers_may_be_written_and_outlive_the_model(bundle: Bundles) -> None:
    model = glowplug.load(bundle("constant_output"))
    answer = model(np.ones((1, 2), np.float32))
    table = next(array for array in answer.values() if array.shape == (4, 100))
    copy = table.copy()
    model.close()
    table += 1.0
    np.testing.assert_array_equal(table, copy + 1.0)


def test_state_lives_in_the_model_and_not_in_the_bundle(bundle: Bundles) -> None:
    x = np.ones(300, np.float32)
    for _ in range(2):
        with glowplug.load(bundle("counter")) as model:
            answers = [model(x) for _ in range(3)]
            assert [int(answer["count"]) for answer in answers] == [6, 7, 8]
            assert [float(answer["total"][0]) for answer in answers] == [1.0, 2.0, 3.0]


def test_tf1_state_in_an_answer_does_not_change_later(bundle: Bundles) -> None:
    with glowplug.load(bundle("tf1_variables")) as model:
        x = np.ones((1, 8, 8, 3), np.float32)
        answers = [model.signature("count")(x) for _ in range(3)]
        assert [int(answer) for answer in answers] == [1, 2, 3]


def test_close(bundle: Bundles) -> None:
    model = glowplug.load(bundle("dense"))
    model.close()
    model.close()
    with pytest.raises(errors.ClosedError, match="closed"):
        model(np.ones((1, 16), np.float32))


def test_load_async(bundle: Bundles) -> None:
    async def main() -> tuple[int, list[str]]:
        beats, stages = 0, []

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(beat())
        model = await glowplug.load_async(bundle("dense"), progress=stages.append)
        task.cancel()
        model(np.ones((1, 16), np.float32))
        model.close()
        return beats, stages

    beats, stages = asyncio.run(main())
    assert beats > 1
    assert stages[-1] == "ready"


BAD_CALLS = {
    "wrong name": ({"nope": np.ones((1, 4), np.float32)}, "unknown 'nope'; missing 'a', 'b'"),
    "missing": ({"a": np.ones((1, 4), np.float32)}, "missing 'b'"),
    "no dict": (np.ones((1, 4), np.float32), "2 inputs are needed"),
    "dtype": ({"a": np.ones((1, 4)), "b": np.ones((1, 6), np.float32)}, "must be float32[?, 4], not float64[1, 4]"),
    "ragged": ({"a": [[1.0], [1.0, 2.0]], "b": [[1.0] * 6]}, "is no array"),
    "words": ({"a": "text", "b": [[1.0] * 6]}, "input 'a' is no array"),
    "shape": ({"a": np.ones((1, 5), np.float32), "b": np.ones((1, 6), np.float32)}, "TensorFlow refused the inputs"),
}


@pytest.mark.parametrize("case", sorted(BAD_CALLS))
def test_bad_inputs_show_the_signature(case: str, bundle: Bundles) -> None:
    value, expected = BAD_CALLS[case]
    with glowplug.load(bundle("two_in_two_out")) as model, pytest.raises(errors.InputError) as caught:
        model(value)
    text = str(caught.value)
    assert expected in text
    assert "(a: float32[?, 4], b: float32[?, 6]) -> (left: float32[?, 2], right: float32[?, 1])" in text
    assert "\n" not in text


def test_string_inputs(bundle: Bundles) -> None:
    with glowplug.load(bundle("static_table")) as model:
        for value in (["the", "no"], [b"the", b"no"], np.array(["the", "no"]), np.array([b"the", b"no"])):
            assert model(value)["id"].tolist() == [4, -1]
        with pytest.raises(errors.InputError, match="must be strings"):
            model([1, 2])
        with pytest.raises(errors.InputError, match="must be strings"):
            model(np.ones(2))


def test_unknown_signature(bundle: Bundles) -> None:
    with glowplug.load(bundle("several_signatures")) as model:
        with pytest.raises(errors.InputError, match=r"it has .*upper"):
            model.signature("nope")
        assert model.signature("upper")(["abc"]).tolist() == [b"ABC"]


def test_savedmodel_needs_trust_unless_sealed(bundle: Bundles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "m.glow"
    shutil.copytree(bundle("uses_file_op"), directory)
    x = np.ones(3, np.float32)
    with glowplug.load(directory) as model:  # this user packed it
        assert model(x).tolist() == [1.0, 1.0, 1.0]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    with pytest.raises(errors.UntrustedBundleError, match="trust=True"):
        glowplug.load(directory)
    with glowplug.load(directory, trust=True) as model:
        model(x)
    monkeypatch.undo()
    (directory / "bundle.seal").write_bytes(b"0" * 64)
    with pytest.raises(errors.UntrustedBundleError):
        glowplug.load(directory)


def test_a_changed_saved_model_is_noticed_even_when_trusted(bundle: Bundles, tmp_path: Path) -> None:
    directory = tmp_path / "m.glow"
    shutil.copytree(bundle("uses_file_op"), directory)
    graph = directory / "saved_model" / "saved_model.pb"
    data = bytearray(graph.read_bytes())
    data[len(data) // 2] ^= 1
    graph.write_bytes(data)
    with pytest.raises(errors.DigestError):
        glowplug.load(directory, trust=True)


def test_verify_reads_every_byte(bundle: Bundles, tmp_path: Path) -> None:
    directory = tmp_path / "m.glow"
    shutil.copytree(bundle("dense"), directory)
    weights = directory / "weights.bin"
    data = bytearray(weights.read_bytes())
    data[100] ^= 1
    weights.write_bytes(data)
    glowplug.load(directory).close()  # weights are mapped, not read
    with pytest.raises(errors.DigestError):
        glowplug.load(directory, verify=True)


@pytest.mark.parametrize("damage", ["graph", "truncated weights", "manifest", "missing graph", "newer"])
def test_damaged_bundles_are_refused(damage: str, bundle: Bundles, tmp_path: Path) -> None:
    directory = tmp_path / "m.glow"
    shutil.copytree(bundle("dense"), directory)
    manifest = directory / "bundle.json"
    if damage == "graph":
        data = bytearray((directory / "graph.pb").read_bytes())
        data[10] ^= 1
        (directory / "graph.pb").write_bytes(data)
    elif damage == "truncated weights":
        with (directory / "weights.bin").open("r+b") as stream:
            stream.truncate(100)
    elif damage == "missing graph":
        (directory / "graph.pb").unlink()
    elif damage == "newer":
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "glowplug_bundle": 2}))
    else:
        manifest.write_text(manifest.read_text().replace("float32", "float64", 1))
    with pytest.raises(errors.BundleError) as caught:
        glowplug.load(directory)
    assert "\n" not in str(caught.value)


def test_not_a_bundle(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nope"):
        with pytest.raises(errors.NotABundleError):
            glowplug.load(path)


def test_negative_threads(bundle: Bundles) -> None:
    with pytest.raises(errors.UsageError):
        glowplug.load(bundle("dense"), intra_op_threads=-1)


@pytest.mark.parametrize("name", ["lstm", "string_lookup", "two_in_two_out"])
def test_answers_on_the_callers_thread_are_the_same(name: str, bundle: Bundles) -> None:
    opened = open_bundle(bundle(name))
    pooled = open_engine(opened, Options())
    alone = open_engine(opened, Options(intra_op_threads=1, inter_op_threads=CALLERS_THREAD))
    inputs = [_sample(port.spec) for port in pooled.signatures["serving_default"].inputs.values()]
    for one, other in zip(pooled.run("serving_default", inputs), alone.run("serving_default", inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
