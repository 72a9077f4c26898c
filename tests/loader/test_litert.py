"""The `litert` engine answers as its model says, shares packed weights, and needs no TensorFlow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from tests import tflites

import glowplug
from glowplug.bundle import layout
from glowplug.bundle.verify import verify
from glowplug.core.disk.digest import sha256_file
from glowplug.core.errors import ClosedError, DigestError, InputError, UnknownNodeError, UnsupportedModelError
from glowplug.core.manifest import PackedWeights
from glowplug.loader.engines import packed_weights
from glowplug.loader.engines.litert_interfaces import installed_release, pack_weights

INTERFACES = ("compiled", "declared", "interpreter")
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": f"{Path(glowplug.__file__).parents[1]}{os.pathsep}{Path(__file__).parents[2]}",
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this test's packed weights."""
    monkeypatch.setenv("GLOWPLUG_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "litert"


def bundle(tmp_path: Path, data: bytes, interface: str = "interpreter", **more) -> Path:
    tflites.write_bundle(tmp_path / "m.glow", data, interface, **more)
    return tmp_path / "m.glow"


def features(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def packed_files(cache: Path) -> list[str]:
    return sorted(one.name for one in cache.glob("*.weights")) if cache.exists() else []


def run_python(code: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(
        command, env={**ENVIRONMENT, **os.environ, **environment, "PYTHONPATH": ENVIRONMENT["PYTHONPATH"]},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("interface", INTERFACES)
def test_any_batch_is_answered(tmp_path: Path, interface: str) -> None:
    with glowplug.load(bundle(tmp_path, tflites.dense(), interface)) as model:
        assert model.engine == "litert"
        for rows in (1, 3, 1, 0, 2, 7):
            x = features(rows, 4)
            answer = model(x)
            assert answer.shape == (rows, 3)
            assert answer.dtype == np.float32
            np.testing.assert_allclose(answer, tflites.dense_answer(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("interface", INTERFACES)
def test_inputs_may_lie_in_memory_as_they_like(tmp_path: Path, interface: str) -> None:
    whole = features(8, 8)
    read_only = features(2, 4)
    read_only.setflags(write=False)
    with glowplug.load(bundle(tmp_path, tflites.dense(), interface)) as model:
        for x in (
            whole[::2, 4:],
            whole[:4].T[:3],
            whole[::-1, ::-2],
            np.asfortranarray(whole[:3, :4]),
            np.broadcast_to(whole[0, :4], (5, 4)),
            read_only,
            whole[:1, ::2],
            np.asfortranarray(whole[:1, :4]),
        ):
            part = x[:, :4]
            np.testing.assert_allclose(model(part), tflites.dense_answer(part), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("interface", INTERFACES)
def test_an_answer_stays_when_the_next_one_comes(tmp_path: Path, interface: str) -> None:
    with glowplug.load(bundle(tmp_path, tflites.dense(), interface)) as model:
        x = features(1, 4)
        first = model(x)
        kept = first.copy()
        model(x + 1)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize(("kind", "dtype"), [(tflites.INT64, np.int64), (tflites.INT32, np.int32)])
def test_inputs_and_outputs_go_by_their_names(tmp_path: Path, kind: int, dtype: type) -> None:
    interface = "compiled" if dtype is np.int32 else "interpreter"
    with glowplug.load(bundle(tmp_path, tflites.two_sided(kind), interface)) as model:
        for count in (1, 4):
            a, b = np.arange(count, dtype=dtype), np.full(count, 10, dtype)
            answer = model({"a": a, "b": b})
            np.testing.assert_array_equal(answer["right"], a + b)
            np.testing.assert_array_equal(answer["left"], a + a)


@pytest.mark.parametrize("interface", INTERFACES)
def test_two_names_may_stand_for_one_signature(tmp_path: Path, interface: str) -> None:
    with glowplug.load(bundle(tmp_path, tflites.dense(), interface, names={"serve": "serving_default"})) as model:
        x = features(2, 4)
        np.testing.assert_array_equal(model.signature("serve")(x), model(x))


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_file_without_signatures_is_called_by_the_names_of_its_tensors(tmp_path: Path, interface: str) -> None:
    data = tflites.dense(signature=None, rows=1)
    with glowplug.load(bundle(tmp_path, data, interface, any_shape=True)) as model:
        for rows in (1, 3, 1):
            x = features(rows, 4)
            np.testing.assert_allclose(model({"features:0": x}), tflites.dense_answer(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("interface", INTERFACES)
def test_bad_inputs_are_refused_and_do_no_harm(tmp_path: Path, interface: str) -> None:
    with glowplug.load(bundle(tmp_path, tflites.dense(), interface)) as model:
        for bad, reason in (
            (features(2, 5), r"features.*float32\[\?, 4\].*\[2, 5\]"),
            (features(4), r"features"),
            (features(1, 2, 4), r"features"),
            (features(2, 4).astype(np.float64), "float64"),
            ({"other": features(2, 4)}, "unknown 'other'"),
            ({}, "missing 'features'"),
        ):
            with pytest.raises(InputError, match=reason):
                model(bad)
        with pytest.raises(InputError, match="no such signature"):
            model.signature("other")
        np.testing.assert_allclose(model(np.zeros((2, 4), np.float32)), [tflites.BIAS] * 2)
        assert model([[0, 0, 0, 0]]).shape == (1, 3)


def test_a_shape_that_litert_refuses_is_the_callers_fault(tmp_path: Path) -> None:
    with glowplug.load(bundle(tmp_path, tflites.dense(), any_shape=True)) as model:
        with pytest.raises(InputError, match="LiteRT refused"):
            model(features(2, 5))
        assert model(features(2, 4)).shape == (2, 3)


def test_outputs_whose_shape_is_in_the_data(tmp_path: Path) -> None:
    with glowplug.load(bundle(tmp_path, tflites.where())) as model:
        for values in ([0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [1.0], []):
            x = np.array(values, np.float32)
            np.testing.assert_array_equal(model(x), np.argwhere(x))


@pytest.mark.parametrize("interface", ["compiled", "declared"])
def test_an_interface_that_would_overrun_its_buffers_is_refused(tmp_path: Path, interface: str) -> None:
    with pytest.raises(UnsupportedModelError, match=interface):
        glowplug.load(bundle(tmp_path, tflites.where(), interface))


def test_tensors_that_the_model_does_not_have_are_refused(tmp_path: Path) -> None:
    path = bundle(tmp_path, tflites.dense())
    manifest = json.loads((path / layout.MANIFEST).read_bytes())["manifest"]
    manifest["signatures"]["serving_default"]["inputs"][0]["tensor"] = "0:1"
    from tests.bundle.samples import seal

    (path / layout.MANIFEST).write_bytes(seal(manifest))
    with pytest.raises(UnknownNodeError, match="0:1"):
        glowplug.load(path)


@pytest.mark.parametrize("interface", INTERFACES)
def test_many_threads_get_their_own_answers(tmp_path: Path, interface: str) -> None:
    model = glowplug.load(bundle(tmp_path, tflites.dense(), interface))
    wrong: list[object] = []

    def call(number: int) -> None:
        draw = np.random.default_rng(number)
        for _ in range(40):
            x = draw.normal(size=(1 + number % 3, 4)).astype(np.float32)
            if not np.allclose(model(x), tflites.dense_answer(x), atol=1e-4):
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert wrong == []
    model.close()
    model.close()
    with pytest.raises(ClosedError):
        model(features(1, 4))


def test_packed_weights_are_made_once_and_mapped(tmp_path: Path, cache: Path) -> None:
    path = bundle(tmp_path, tflites.dense(), "compiled")
    with glowplug.load(path) as model:
        assert model.info.notes == ()
        (name,) = packed_files(cache)
        made = (cache / name).stat()
        assert str(cache / name) in Path("/proc/self/maps").read_text()
        with glowplug.load(path) as again:
            np.testing.assert_array_equal(again(features(2, 4)), model(features(2, 4)))
    assert packed_files(cache) == [name]
    assert (cache / name).stat().st_ino == made.st_ino
    assert (cache / name).stat().st_mode & 0o777 == 0o400
    glowplug.load(bundle(tmp_path / "other", tflites.dense(rows=1), "compiled")).close()
    assert len(packed_files(cache)) == 2


@pytest.mark.parametrize("damage", ["empty", "cut", "zeros", "offset"])
def test_packed_weights_that_are_not_whole_are_made_again(tmp_path: Path, cache: Path, damage: str) -> None:
    path = bundle(tmp_path, tflites.dense(), "compiled")
    glowplug.load(path).close()
    (name,) = packed_files(cache)
    whole = (cache / name).read_bytes()
    spoiled = {
        "empty": b"",
        "cut": whole[:-64],
        "zeros": bytes(len(whole)),
        "offset": whole[:8] + (len(whole) * 2).to_bytes(8, "little") + whole[16:],
    }[damage]
    (cache / name).chmod(0o600)
    (cache / name).write_bytes(spoiled)
    with glowplug.load(path) as model:
        np.testing.assert_allclose(model(np.zeros((1, 4), np.float32)), [tflites.BIAS])
        assert model.info.notes == ()
    assert (cache / name).read_bytes() == whole


def test_processes_that_make_packed_weights_at_once_leave_one_whole_file(tmp_path: Path, cache: Path) -> None:
    path = bundle(tmp_path, tflites.dense(), "compiled")
    code = """
import sys
sys.stdin.read(1)
import numpy as np, glowplug
model = glowplug.load(sys.argv[1])
assert model.info.notes == (), model.info.notes
print(model(np.ones((1, 4), np.float32)).tolist())
"""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path)],
            env={**os.environ, "PYTHONPATH": ENVIRONMENT["PYTHONPATH"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    answers = set()
    for one in children:
        one.stdin.write("go")
        one.stdin.flush()
    for one in children:
        answers.add(one.communicate(timeout=120)[0])
    assert answers == {f"{tflites.dense_answer(np.ones((1, 4), np.float32)).tolist()}\n"}
    (name,) = packed_files(cache)
    assert packed_weights.is_whole(str(cache / name))
    assert [one.name for one in cache.iterdir() if "partial" in one.name] == []


def pack_here(path: Path) -> PackedWeights:
    packed_weights.make_file(str(path / layout.PACKED), lambda target: pack_weights(str(path / layout.TFLITE), target))
    key = packed_weights.machine_key(sha256_file(path / layout.TFLITE), installed_release())
    file = path / layout.PACKED
    return PackedWeights(key, file.stat().st_size, sha256_file(file))


def test_packed_weights_of_the_bundle_serve_this_machine(tmp_path: Path, cache: Path) -> None:
    path = bundle(tmp_path, tflites.dense(), "compiled")
    packed = pack_here(path)
    tflites.change_manifest(path, packed=packed)
    with glowplug.load(path) as model:
        assert f"{path.resolve()}/{layout.PACKED}" in Path("/proc/self/maps").read_text()
        assert model(features(1, 4)).shape == (1, 3)
    assert packed_files(cache) == []
    assert verify(path).unlisted == ()
    tflites.change_manifest(path, packed=PackedWeights("0" * 64, packed.size, packed.sha256))
    with glowplug.load(path) as model:  # packed on another machine
        assert model(features(1, 4)).shape == (1, 3)
    assert len(packed_files(cache)) == 1


def test_packed_weights_may_be_left_behind_but_not_changed(tmp_path: Path, cache: Path) -> None:
    path = bundle(tmp_path, tflites.dense(), "compiled")
    tflites.change_manifest(path, packed=pack_here(path))
    data = bytearray((path / layout.PACKED).read_bytes())
    data[300] ^= 1
    (path / layout.PACKED).chmod(0o600)
    (path / layout.PACKED).write_bytes(data)
    with pytest.raises(DigestError, match=layout.PACKED):
        verify(path)
    (path / layout.PACKED).unlink()
    verify(path)
    with glowplug.load(path) as model:
        assert model(features(1, 4)).shape == (1, 3)
    assert len(packed_files(cache)) == 1


def test_without_a_cache_a_model_works_and_says_so(tmp_path: Path, cache: Path) -> None:
    path = bundle(tmp_path, tflites.dense(), "compiled")
    cache.mkdir(parents=True)
    cache.chmod(0o777)  # anyone could put weights there
    with glowplug.load(path) as model:
        (note,) = model.info.notes
        assert "not shared" in note
        assert model(features(1, 4)).shape == (1, 3)


def test_neither_tensorflow_nor_a_word_on_stderr(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["tensorflow"] = None
import numpy as np, glowplug
for path in sys.argv[1:]:
    with glowplug.load(path) as model:
        print(model(np.ones((2, 4), np.float32)).shape, model.info.notes)
"""
    for interface in INTERFACES:
        done = run_python(code, bundle(tmp_path / interface, tflites.dense(), interface))
        assert (done.returncode, done.stderr, done.stdout) == (0, "", "(2, 3) ()\n")


def test_where_the_package_is_missing_the_extra_is_named(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["ai_edge_litert"] = None
from glowplug.cli.main import main
sys.exit(main(["predict", sys.argv[1], "--input", sys.argv[2]]))
"""
    np.save(tmp_path / "x.npy", features(1, 4))
    done = run_python(code, bundle(tmp_path, tflites.dense()), tmp_path / "x.npy")
    assert done.returncode == 5
    assert "pip install 'glowplug[litert]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


FORK = """
import os, sys
import numpy as np
import glowplug
model = glowplug.load(sys.argv[1])
x = np.ones((1, 4), np.float32)
model(x)
child = os.fork()
if child == 0:
    for attempt in (lambda: model(x), lambda: glowplug.load(sys.argv[1])):
        try:
            attempt()
            os._exit(1)
        except glowplug.GlowplugError as error:
            if type(error).__name__ != "ForkedError":
                os._exit(2)
    model.close()
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert model(x).shape == (1, 3)
"""


@pytest.mark.parametrize("interface", ["compiled", "interpreter"])
def test_a_model_raises_after_a_fork(tmp_path: Path, interface: str) -> None:
    done = run_python(FORK, bundle(tmp_path, tflites.dense(), interface))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("interface", ["compiled", "interpreter"])
def test_a_standby_hosts_it_without_tensorflow(tmp_path: Path, interface: str) -> None:
    code = """
import sys
import numpy as np, glowplug
from glowplug.standby.client import control
model = glowplug.load(sys.argv[1], standby=True)
try:
    assert type(model).__name__ == "RemoteModel", model.info.notes
    print(model(np.ones((2, 4), np.float32)).tolist())
    try:
        model(np.ones((2, 5), np.float32))
    except glowplug.GlowplugError as error:
        assert type(error).__name__ == "InputError"
        print("refused")
    model.close()
finally:
    for one in control.standbys():
        control.stop(one)
"""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text('import sys\nsys.modules["tensorflow"] = None\n')
    (tmp_path / "standby").mkdir(mode=0o700)
    path = bundle(tmp_path, tflites.dense(), interface)
    environment = {**os.environ, "GLOWPLUG_STANDBY_DIR": str(tmp_path / "standby")}
    environment["PYTHONPATH"] = f"{tmp_path / 'site'}{os.pathsep}{ENVIRONMENT['PYTHONPATH']}"
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    expected = tflites.dense_answer(np.ones((2, 4), np.float32)).tolist()
    assert done.stdout == f"{expected}\nrefused\n"


def test_threads_that_make_packed_weights_at_once_leave_one_whole_file(tmp_path: Path, cache: Path) -> None:
    path = bundle(tmp_path, tflites.dense(), "compiled")
    begin, notes = threading.Barrier(4), []

    def load() -> None:
        begin.wait()
        with glowplug.load(path) as model:
            notes.append((model.info.notes, model(np.zeros((1, 4), np.float32)).tolist()))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert notes == [((), [tflites.BIAS.tolist()])] * 4
    assert len(packed_files(cache)) == 1


ROUNDS = """
import gc, os, sys
import numpy as np
import glowplug
x, seen = np.ones((2, 4), np.float32), []
for number in range(50):
    with glowplug.load(sys.argv[1]) as model:
        model(x), model(x[:1])
    del model
    gc.collect()
    maps = open("/proc/self/maps").read()
    mapped = maps.count(".weights") + maps.count("model.tflite")
    resident = int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")
    seen.append((len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), mapped, resident))
settled, last = seen[10], seen[-1]
assert last[:3] == settled[:3], (settled, last)
assert last[2] == 0, last
assert last[3] - settled[3] < 8 << 20, (settled, last)
"""


@pytest.mark.parametrize("interface", INTERFACES)
def test_fifty_rounds_stay_flat(tmp_path: Path, interface: str) -> None:
    done = run_python(ROUNDS, bundle(tmp_path, tflites.dense(), interface))
    assert done.returncode == 0, done.stderr


VERBS = """
import sys
sys.modules["tensorflow"] = None
from glowplug.cli.main import main
print([main(words.split()) for words in sys.argv[1:]])
"""


def test_every_verb_about_bundles_does_without_tensorflow(tmp_path: Path) -> None:
    path = bundle(tmp_path, tflites.dense(), "compiled")
    np.save(tmp_path / "x.npy", features(2, 4))
    done = run_python(VERBS, f"inspect {path}", f"verify {path}", f"predict {path} --input {tmp_path}/x.npy", "doctor")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("[0, 0, 0, 0]\n")
    assert "runs in LiteRT through CompiledModel" in done.stdout
    assert "scores: float32[2, 3]" in done.stdout
    with glowplug.load(path, verify=True) as model:
        assert model(features(1, 4)).shape == (1, 3)
