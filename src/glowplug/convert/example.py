"""A call that suits a model, and the model as a SavedModel: what a program needs that wants to try the model elsewhere.

A child process looks for it, since that takes TensorFlow, which can die on a model.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glowplug.bench.contestants.start import write_arrays
from glowplug.bench.forms import identity_of
from glowplug.core import errors
from glowplug.core.disk.files import write_file

from .source.sources import check_path

_DEFAULT = "serving_default"
_RESULT = "example.json"


@dataclass(frozen=True, slots=True)
class Example:
    """`inputs` are as `write_arrays` left them."""

    saved_model: Path
    signature: str
    inputs: tuple[dict[str, Any], ...]


def make_example(
    model: Path,
    scratch: Path,
    *,
    warmup: Path | None = None,
    signature: str = "",
    unsafe_lambda: bool = False,
    limit_s: float = 600.0,
) -> Example:
    """Write an example call of a SavedModel directory or a Keras file into `scratch`.

    It is the first request of `warmup` that the model answers, else one with made-up inputs for a batch of one.
    """
    check_path(model)
    wishes = [str(model.absolute()), str(scratch), str(warmup.absolute()) if warmup else "", signature]
    code = f"import sys; sys.path[:] = {sys.path!r}; from glowplug.convert.example import main; main()"
    with tempfile.TemporaryFile() as log:
        command = [sys.executable, "-c", code, *wishes, "unsafe" if unsafe_lambda else ""]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=limit_s, check=False
            )
        except subprocess.TimeoutExpired:
            raise errors.UnsupportedModelError("TensorFlow gave no answer", seen=f"{limit_s:g} s") from None
        log.seek(0)
        said = log.read().decode(errors="replace").splitlines()
    if not _has_example(scratch):
        raise errors.UnsupportedModelError(
            "TensorFlow died on this model", seen=f"exit code {done.returncode} {' '.join(said[-1:])}"[:300]
        )
    return _read_example(scratch)


def make_kept_example(
    model: Path, folder: Path, *, warmup: Path | None = None, signature: str = "", **others: Any
) -> tuple[Path, Example]:
    """Return an example, and the place in `folder` where it is kept: the same one if it is asked for again.

    Another model, or the same after a change, or another way of calling it, has a place of its own.
    """
    scratch = folder.absolute() / identity_of(model, warmup, signature, sorted(others.items()))[:16]
    if _has_example(scratch):
        return scratch, _read_example(scratch)
    shutil.rmtree(scratch, ignore_errors=True)  # somebody was interrupted
    scratch.mkdir(parents=True)
    return scratch, make_example(model, scratch, warmup=warmup, signature=signature, **others)


def _has_example(scratch: Path) -> bool:
    """Say whether an example, or why there is none, is in a folder."""
    return (scratch / _RESULT).exists()


def _read_example(scratch: Path) -> Example:
    """Return the example that is in a folder; raise what says why there is none."""
    document = json.loads((scratch / _RESULT).read_text(encoding="utf-8"))
    if "error" in document:
        kind: type[errors.GlowplugError] = getattr(errors, document["error"], errors.RuntimeFailure)
        raise kind(document["what"], seen=document["seen"], remedy=document["remedy"])
    return Example(Path(document["saved_model"]), document["signature"], tuple(document["inputs"]))


def main() -> None:
    """Child's side."""
    model, scratch, warmup, signature, unsafe_lambda = sys.argv[1:]
    try:
        document = _find(Path(model), Path(scratch), warmup, signature, unsafe_lambda=bool(unsafe_lambda))
    except errors.GlowplugError as error:
        seen = None if error.seen is None else " ".join(str(error.seen).split())
        document = {"error": type(error).__name__, "what": error.what, "seen": seen, "remedy": error.remedy}
    write_file(Path(scratch, _RESULT), json.dumps(document).encode())


def _find(model: Path, scratch: Path, warmup: str, signature: str, *, unsafe_lambda: bool) -> dict[str, Any]:
    from .job import import_tensorflow

    import_tensorflow()
    from .calls.recording import record
    from .calls.typical import typical_request
    from .calls.warmup_files import read_requests
    from .source.saved_model import SavedModel
    from .source.sources import locate

    located = locate(model, scratch, unsafe_lambda=unsafe_lambda)
    with SavedModel(located.directory) as source:
        name = signature or (_DEFAULT if _DEFAULT in source.signatures else next(iter(source.signatures)))
        if name not in source.signatures:
            raise errors.UsageError(
                "the model has no such signature", seen=name, remedy=f"it has {', '.join(source.signatures)}"
            )
        given = read_requests(Path(warmup), source.signatures) if warmup else []
        request = typical_request(record(source, given), len(given), name)
    if request is None:
        raise errors.UnsupportedModelError(
            "no made-up input suits the signature", seen=name, remedy="give a real request with --warmup"
        )
    return {
        "saved_model": str(located.directory),
        "signature": name,
        "inputs": write_arrays(str(scratch), dict(request.inputs)),
    }
