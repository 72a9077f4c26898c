"""Brings a model into the form that each peer takes. Each conversion is a process of its own, which may fail."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from glowplug.core.benchmark import Row

from .contestant import Contestant, ending, process_environment, script_command
from .forms import KeptForms, identity_of, package_identity
from .peers import GLOWPLUG, Peer, find_interpreter

_CONVERTERS = Path(str(files(__package__))) / "converters"
_INSTALL = "`make peers` in a checkout of Glowplug installs it"
_FOR_OTHERS = ("tflite", "onnx", "openvino")  # made by programs that are not Glowplug
_CHOICE = "choice"


@dataclass(frozen=True, slots=True)
class Source:
    """A model: what the user has, and the same as a SavedModel. `warmup` is a file of requests, for `pack`."""

    path: Path
    saved_model: Path
    signature: str
    warmup: Path | None = None


class NotPreparedError(Exception):
    """A model could not be brought into a form; the text says why in one line."""


class Preparation:
    """Makes each form once, in a folder that it is given; what an earlier benchmark left there is used again."""

    def __init__(self, source: Source, scratch: Path, environments: Path, *, limit_s: float) -> None:
        self._source, self._scratch, self._environments, self._limit_s = source, scratch, environments, limit_s
        self._made: dict[str, Path | NotPreparedError] = {}
        self._kept = KeptForms(scratch)
        self.chosen = ""

    def contestant(self, peer: Peer) -> Contestant | Row:
        """Return the peer ready to start, or the row that says why it is not."""
        python = find_interpreter(peer.environment, peer.module, self._environments)
        if python is None:
            remedy = f"pip install '{peer.distributions[-1]}'" if peer.name.startswith(GLOWPLUG) else _INSTALL
            return Row(peer.name, peer.title, "absent", f"{peer.module} is not installed: {remedy}")
        try:
            model = self.form(peer.form)
        except NotPreparedError as error:
            return Row(peer.name, peer.title, "failed", str(error))
        return Contestant(peer.name, peer.title, peer.script, python, model, peer.distributions)

    def form(self, form: str) -> Path:
        """Return the model in a form; raises `NotPreparedError`, each time it is asked for what cannot be made."""
        if form not in self._made:
            self._made[form] = self._found(form) or self._tried(form)
        made = self._made[form]
        if isinstance(made, NotPreparedError):
            raise made
        return made

    def choose(self) -> None:
        """Have `pack --engine auto` choose; its bundle is that of the engine that it chose."""
        identity = self._identity(_CHOICE)
        known = self._kept.get(_CHOICE, identity)
        if known is None:
            try:
                bundle, packed = self._pack("auto")
            except NotPreparedError:
                return  # each engine says why it cannot take the model
            known = {"path": str(bundle), "engine": packed["manifest"]["engine"]}
            self._kept.put(_CHOICE, identity, **known)
        engine = known["engine"]
        self.chosen = f"{GLOWPLUG}{engine}"
        self._made[engine] = Path(known["path"])

    def _found(self, form: str) -> Path | NotPreparedError | None:
        """Return what an earlier benchmark made of this model."""
        known = self._kept.get(form, self._identity(form))
        if known is None:
            return None
        return NotPreparedError(known["failed"]) if "failed" in known else Path(known["path"])

    def _tried(self, form: str) -> Path | NotPreparedError:
        try:
            made = self._make(form)
        except NotPreparedError as error:
            self._kept.put(form, self._identity(form), failed=str(error))
            return error
        self._kept.put(form, self._identity(form), path=str(made))
        return made

    def _identity(self, form: str) -> str:
        ours = "" if form in _FOR_OTHERS else package_identity()
        return identity_of(self._source.path, self._source.signature, self._source.warmup, ours)

    def _make(self, form: str) -> Path:
        if form == "source":
            return self._source.path
        if form == "saved_model":
            return self._source.saved_model
        if form == "tflite":
            output = self._scratch / "model.tflite"
            python = self._interpreter("", "tensorflow")
            words = [self._source.saved_model, self._source.signature, output]
            self._run([python, _CONVERTERS / "tflite.py", *words], "the converter to LiteRT")
            return output
        if form == "onnx":
            output = self._scratch / "model.onnx"
            python = self._interpreter("tf2onnx", "tf2onnx")
            words = ["--saved-model", self._source.saved_model, "--signature_def", self._source.signature]
            self._run([python, "-m", "tf2onnx.convert", *words, "--tag", "serve", "--output", output], "tf2onnx")
            return output
        if form == "openvino":
            output = self._scratch / "model.xml"
            python = self._interpreter("openvino", "openvino")
            words = [self._source.saved_model, output]
            self._run([python, _CONVERTERS / "openvino_ir.py", *words], "the converter of OpenVINO")
            return output
        return self._pack(form)[0]

    def _pack(self, engine: str) -> tuple[Path, dict[str, Any]]:
        output = self._scratch / f"{engine}.glow"
        command = [sys.executable, "-m", "glowplug", "pack", self._source.saved_model, "-o", output]
        command += ["--engine", engine, "--force", "--json"]
        if self._source.warmup is not None:
            command += ["--warmup", self._source.warmup]
        said = self._run(command, "glowplug pack")
        packed: dict[str, Any] = json.loads(said)
        return output, packed

    def _interpreter(self, environment: str, module: str) -> Path:
        python = find_interpreter(environment, module, self._environments)
        if python is None:
            raise NotPreparedError(f"{module} is not installed, which converts for it: {_INSTALL}")
        return python

    def _run(self, command: list[Any], what: str) -> bytes:
        """Run a conversion to its end; return its standard output."""
        with tempfile.TemporaryFile() as log:
            try:
                done = subprocess.run(
                    [str(word) for word in command],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=self._scratch,
                    env=process_environment(Path(command[0])),
                    timeout=self._limit_s,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise NotPreparedError(f"{what} did not end within {self._limit_s:g} s") from None
            if done.returncode:
                raise NotPreparedError(f"{what}: {ending(done.returncode, log)}")
        return done.stdout


def disk_bytes(path: Path) -> int:
    """Return the size of a model's file, or of all files of its folder."""
    if path.suffix == ".xml":  # OpenVINO's weights are beside the graph
        return sum(one.stat().st_size for one in (path, path.with_suffix(".bin")) if one.exists())
    if path.is_file():
        return path.stat().st_size
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())


@cache
def installed(python: Path, distributions: tuple[str, ...]) -> tuple[int | None, dict[str, str]]:
    """Return the size and the versions of what one installs into an environment for a contestant."""
    command = script_command(python, "installed_size", distributions)
    environment = process_environment(python)
    done = subprocess.run(command, capture_output=True, env=environment, timeout=120, check=False)
    if done.returncode:
        return None, {}
    document = json.loads(done.stdout)
    return document["bytes"], document["versions"]
