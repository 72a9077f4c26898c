"""A process imports TensorFlow and loads a model only to predict with it: a packed bundle needs neither."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.family import family_imports
from glowplug.advise.match import Match
from glowplug.advise.view import View, covered_ns, ids
from glowplug.advise.wording import at, bundle_name, pack_command, seconds
from glowplug.core.profile import Remedy, Span

SYMPTOM = "A process that only predicts starts all of TensorFlow"

_LEAST_NS = 1_000_000_000
# What a native bundle needs: opening TensorFlow's library, and the first call (bench/results/first_prediction.json).
_BUNDLE_NS = 400_000_000
_MODELS = ("saved_model", "keras", "h5")
_SERVERS = (
    "aiohttp",
    "bottle",
    "django",
    "fastapi",
    "flask",
    "grpc",
    "gunicorn",
    "hypercorn",
    "sanic",
    "tornado",
    "uvicorn",
)

_CODE = """\
import glowplug
model = glowplug.load("model.glow")  # after the pack below: no import of TensorFlow, mapped weights
y = model(x)"""


def find(view: View) -> Iterator[Match]:
    """Report, for each model, the first process that loads it and neither trains nor builds one of its own."""
    seen: set[str] = set()
    for load in view.outermost(view.of_kind("load")):
        path = str(load.attrs.get("path", load.name))
        if load.attrs.get("format") not in _MODELS or path in seen or _does_more(view, load.pid):
            continue
        seen.add(path)
        imports = family_imports(view, load.pid)
        first = next((s for s in view.of_kind("step") if s.pid == load.pid and s.start_ns >= load.end_ns), None)
        parts = [*imports, load, *([first] if first is not None and first.attrs.get("index") == 1 else [])]
        start_ns = covered_ns(parts)
        if not imports or start_ns - _BUNDLE_NS < _LEAST_NS:
            continue
        server = _server(view, load.pid)
        bundle = bundle_name(path)
        served = f" glowplug serve NAME={bundle} is a server of its own, in the place of {server}'s." if server else ""
        yield Match(
            title=(
                f"{seconds(start_ns)} of TensorFlow go before a first answer of {path}, which"
                f" {'the service' if server else 'the program'} only asks{at(load.attrs.get('site'))}"
            ),
            evidence={
                "path": path,
                "import_ns": covered_ns(imports),
                "load_ns": load.duration_ns,
                "first_call_ns": first.duration_ns if first is not None else None,
                "server": server,
                "site": load.attrs.get("site"),
            },
            saves_ns=start_ns - _BUNDLE_NS,
            remedy=Remedy(
                text=f"Pack the model and load the bundle, without importing TensorFlow or Keras.{served}",
                code=_CODE,
                command=pack_command(path),
            ),
            spans=ids(parts),
        )


def _does_more(view: View, pid: int) -> bool:
    """Say whether a process trains, or makes a model that is not in a file: it needs TensorFlow for that."""
    trains = any(s.pid == pid and s.attrs.get("mode") == "train" for s in view.of_kind("step", "steps"))
    builds = any(s.pid == pid and view.enclosing(s, "load", "model") is None for s in view.of_kind("model"))
    return trains or builds


def _server(view: View, pid: int) -> str | None:
    """Return the package that answers requests in a process, where one is imported."""
    packages: dict[str, Span] = {}
    for span in view.of_kind("module"):
        if span.pid == pid:
            packages.setdefault(span.name.partition(".")[0], span)
    return next((name for name in _SERVERS if name in packages), None)
