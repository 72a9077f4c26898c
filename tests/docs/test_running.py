"""What the documentation and the rules print runs as it is printed. Few processes import TensorFlow for all of it."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.components.processes import free_ports
from tests.components.seaweedfs import SeaweedFS
from tests.report import profiles

from .blocks import ROOT, Block, python_blocks
from .commands import Command, all_commands, lines_of, script

pytestmark = pytest.mark.tensorflow

# These pack models, or start a standby, which import TensorFlow in processes of their own.
HEAVY = (
    "README.md",
    "docs/how-to/pack.md",
    "docs/how-to/standby.md",
    "src/glowplug/advise/rules/import_in_each_worker.py",
)
# Pages whose commands build on each other: they are run whole.
SEQUENCES = tuple(
    f"docs/{page}.md"
    for page in (
        "how-to/serve",
        "how-to/storage",
        "how-to/standby",
        "how-to/startup-budget-in-ci",
        "tutorial/first-bundle",
    )
)
STORAGE = ("docs/how-to/fleet.md",)
CLUSTER = ("docs/how-to/cluster.md",)  # run by tests/cluster/test_documented.py
NEEDS = {
    "docs/how-to/custom-ops.md": ("tensorflow_text",),
    "docs/how-to/tune-without-growing.md": ("optuna", "keras_tuner"),
    "docs/how-to/reinitialize-in-a-loop.md": ("optuna", "keras_tuner"),
}
BLOCKS = python_blocks()
COMMANDS = [each for each in all_commands() if not each.installs and each.elsewhere is None]


def missing(block: Block) -> list[str]:
    return [name for name in NEEDS.get(block.page, ()) if importlib.util.find_spec(name) is None]


def run_blocks(blocks: list[Block], folder: Path, extra: Mapping[str, str] = {}) -> dict[str, dict[str, str | None]]:
    """Run blocks in one process; returns their outcomes by name."""
    names = [block.name for block in blocks if not missing(block)]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "GLOWPLUG_CACHE_DIR": str(folder / "cache"),
        **extra,
    }
    command = [sys.executable, "-m", "tests.docs.snippets", str(folder), *names]
    with (folder / "stderr").open("w+") as errors:
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        errors.seek(0)
        said = errors.read()[-4000:]
    outcomes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name"')]
    ended = {"error": f"the process ended before it, with {done.returncode}:\n{said}", "printed": ""}
    return dict.fromkeys(names, ended) | {outcome["name"]: outcome for outcome in outcomes}


@pytest.fixture(scope="module")
def light_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("light")


@pytest.fixture(scope="module")
def light(light_folder: Path) -> dict[str, dict[str, str | None]]:
    return run_blocks([block for block in BLOCKS if block.page not in HEAVY + STORAGE + CLUSTER], light_folder)


@pytest.fixture(scope="module")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str | None]]:
    chosen = [block for block in BLOCKS if block.page in HEAVY]
    with tempfile.TemporaryDirectory(prefix="glow-", dir="/tmp") as sockets:  # whose paths must be short
        own = {"GLOWPLUG_STANDBY_DIR": sockets}
        try:
            return run_blocks(chosen, tmp_path_factory.mktemp("heavy"), own)
        finally:
            stop = [sys.executable, "-m", "glowplug", "standby", "stop", "--all"]
            subprocess.run(stop, env={**os.environ, **own}, capture_output=True)


def check(block: Block, outcomes: Mapping[str, Mapping[str, str | None]]) -> str:
    if missing(block):
        pytest.skip(f"not installed: {', '.join(missing(block))}")
    outcome = outcomes[block.name]
    assert outcome["error"] is None, f"{block.text}\n{outcome['error']}"
    return outcome["printed"] or ""


def parametrize(choose: Callable[[Block], bool]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", [b for b in BLOCKS if choose(b)], ids=lambda block: block.name)


@parametrize(lambda block: block.page not in HEAVY + STORAGE + CLUSTER)
def test_runs(block: Block, light: dict[str, dict[str, str | None]]) -> None:
    check(block, light)


@pytest.mark.slow
@parametrize(lambda block: block.page in HEAVY)
def test_runs_with_processes_of_its_own(block: Block, heavy: dict[str, dict[str, str | None]]) -> None:
    check(block, heavy)


@pytest.mark.slow
def test_runs_on_a_storage(s3: SeaweedFS, tmp_path: Path) -> None:
    """Traces, bundles and keys of the page about fleets, in the bucket that it names."""
    blocks = [block for block in BLOCKS if block.page in STORAGE]
    outcomes = run_blocks(blocks, tmp_path, s3.environment())
    for block in blocks:
        check(block, outcomes)


def test_watching_a_study_counts_its_rounds(light: dict[str, dict[str, str | None]]) -> None:
    page = [block for block in BLOCKS if block.page == "docs/how-to/tune-without-growing.md"]
    watching = next(block for block in page if "watch()" in block.text)
    assert re.search(r"\b20 rounds\b", check(watching, light))


TRAINING = """\
import keras
import numpy as np

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((4, 4)), np.ones((4, 1)), batch_size=2, verbose=0)
"""


@pytest.fixture(scope="module")
def page_folder(light_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that gives a page a folder with the files that commands speak of."""
    if not (light_folder / "given").exists():  # the snippets did not run before
        run_blocks([], light_folder)

    def of(page: str) -> Path:
        folder = tmp_path_factory.mktemp(Path(page).stem) / "work"
        shutil.copytree(light_folder / "given", folder)
        make_program_files(folder)
        if page.endswith("startup-budget-in-ci.md"):
            (folder / "train.py").write_text(TRAINING)
        if page.endswith("first-bundle.md"):
            (folder / "digits_dir").rename(folder / "digits")  # which its Python makes
        if page.endswith("serve.md"):
            shutil.rmtree(folder / "saved_model_dir")
            shutil.copytree(folder / "half_dir", folder / "saved_model_dir")
            name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
            made = [
                "openssl",
                "req",
                "-x509",
                "-nodes",
                "-newkey",
                "rsa:2048",
                "-keyout",
                "server.key",
                "-out",
                "ca.pem",
            ]
            subprocess.run([*made, *name], cwd=folder, check=True, capture_output=True)
            shutil.copy(folder / "ca.pem", folder / "server.pem")
        return folder

    return of


def make_program_files(folder: Path) -> None:
    """Programs that need no TensorFlow, profiles, arrays and settings."""
    from glowplug.core.profile_json import write_profile

    (folder / "train.py").write_text("import json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    (folder / "my" / "service.py").write_text("import http.client\n")
    (folder / "bin").mkdir()
    (folder / "bin" / "gunicorn").write_text('#!/bin/sh\necho "$@"\n')
    (folder / "bin" / "gunicorn").chmod(0o755)
    for name in ("start", "before", "after", "main"):
        write_profile(profiles.training(), folder / f"{name}.json")
    rows = np.ones((2, 4), "float32")
    for name in ("image", "ids", "x"):
        np.save(folder / f"{name}.npy", rows)
    np.save(folder / "mask.npy", rows[:, :2])
    # Of the range that made-up inputs have: coarse numbers are as good as the requests they were made by.
    np.savez(folder / "requests.npz", x=np.random.default_rng(1).uniform(-3, 3, (256, 4)).astype("float32"))
    (folder / "ids.json").write_text("[[1, 2], [3, 4]]")
    (folder / "text.json").write_text("[[1, 2, 3, 4]]")
    shutil.copytree(folder / "model.glow", folder / "resnet50.glow")
    shutil.copytree(folder / "half_dir", folder / "served" / "half" / "1")
    half = f'config {{ name: "half" base_path: "{folder}/served/half" model_platform: "tensorflow" }}'
    (folder / "models.config").write_text(f"model_config_list {{ {half} }}")
    (folder / "batching.txt").write_text("max_batch_size { value: 8 } batch_timeout_micros { value: 1000 }")
    (folder / "examples").symlink_to(ROOT / "examples")
    for name in ("team", "release"):
        command = [sys.executable, "-m", "glowplug", "keygen", f"{name}.key"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


def run_commands(commands: list[Command], folder: Path, extra: Mapping[str, str] = {}) -> None:
    """Run commands in one shell, and check how each ended and, where the page says so, what it answered."""
    rest, rpc = free_ports(2)
    places = {"8501": str(rest), "8500": str(rpc), "=/models/half": f"={folder}/served/half"}
    with tempfile.TemporaryDirectory(prefix="glow-", dir="/tmp") as sockets:
        environment = {
            **os.environ,
            "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "GLOWPLUG_CACHE_DIR": str(folder / "cache"),
            "GLOWPLUG_STANDBY_DIR": sockets,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            **extra,
        }
        subprocess.run(["bash", "-c", script(commands, places)], cwd=folder, env=environment)
        stop = [sys.executable, "-m", "glowplug", "standby", "stop", "--all"]
        subprocess.run(stop, env=environment, capture_output=True)
    codes = dict(line.split() for line in lines_of(folder / "codes").splitlines())
    wrong = []
    for number, command in enumerate(commands):
        out, err = lines_of(folder / f"{number}.out"), lines_of(folder / f"{number}.err")
        printed = command.printed
        for shown, free in places.items():
            printed = printed.replace(shown, free)
        answered = not printed or "…" in printed or "".join(out.split()) == "".join(printed.split())
        if int(codes.get(str(number), "98")) not in command.good_codes or not answered:
            wrong.append(f"{command.name}: {command.text}\nended with {codes.get(str(number))}\n{out}{err[-2000:]}")
    assert not wrong, "\n\n".join(wrong)


def of_group(commands: list[Command], group: str) -> list[Command]:
    return [command for command in commands if command.group == group]


LIGHT = [each for each in COMMANDS if not each.heavy and each.page not in SEQUENCES]
BIG = [each for each in COMMANDS if each.heavy or each.page in SEQUENCES]


@pytest.mark.parametrize("group", dict.fromkeys(each.group for each in LIGHT))
def test_commands_run(group: str, page_folder: Callable[[str], Path]) -> None:
    run_commands(of_group(LIGHT, group), page_folder(group))


@pytest.mark.slow
@pytest.mark.parametrize("group", dict.fromkeys(each.group for each in BIG))
def test_commands_run_that_import_tensorflow_or_serve(
    group: str, page_folder: Callable[[str], Path], request: pytest.FixtureRequest
) -> None:
    commands, extra = of_group(BIG, group), {}
    if "tensorflow_text" in str(commands) and importlib.util.find_spec("tensorflow_text") is None:
        pytest.skip("tensorflow_text is not installed")
    for program in ("curl", "openssl"):
        if f" {program} " in str(commands) and shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    folder = page_folder(group)
    if "s3://" in str(commands):
        storage: SeaweedFS = request.getfixturevalue("s3")
        extra = storage.environment()
        fill_storage(storage, folder, extra)
    run_commands(commands, folder, extra)


def fill_storage(storage: SeaweedFS, folder: Path, extra: Mapping[str, str]) -> None:
    """Put what pages fetch into the buckets that they name, signed with the keys of this folder."""
    connection = http.client.HTTPConnection("127.0.0.1", storage.http_port, timeout=30)
    connection.request("POST", "/buckets/bucket/")
    connection.getresponse().read()
    pushes = [("model.glow", "s3://bucket/signed/3", "release"), ("half.glow", "s3://models/half/1", "team")]
    pushes += [("saved_model_dir", "s3://bucket/saved_model/7", "release")]
    pushes += [("model.glow", "s3://bucket/models/encoder/3", "release")]
    for what, url, key in pushes:
        command = [sys.executable, "-m", "glowplug", "push", what, url, "--sign", f"{key}.key"]
        subprocess.run(command, cwd=folder, env={**os.environ, **extra}, check=True, capture_output=True)
