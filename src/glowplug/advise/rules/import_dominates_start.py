"""Most of the start is the import of TensorFlow and Keras, which `glowplug run` shortens without an edit."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.family import RUN_SHARE, STANDBY_SHARE, family_imports, start_ns
from glowplug.advise.match import Match
from glowplug.advise.view import View, covered_ns, ids
from glowplug.advise.wording import at, run_command, seconds
from glowplug.core.profile import Remedy

SYMPTOM = "Most of the start is the import of TensorFlow and Keras"

_LEAST_NS = 1_000_000_000
_LEAST_SHARE = 0.4


def find(view: View) -> Iterator[Match]:
    """Hold the imports against the start of a program that does use TensorFlow."""
    profile = view.profile
    command = run_command(profile)
    if not command or not profile.environment.get("runtime_used", True):
        return  # what is never used need not be imported at all, which is another rule's
    imports = family_imports(view, profile.root_pid)
    import_ns, until_ns = covered_ns(imports), start_ns(view, profile.root_pid)
    if import_ns < _LEAST_NS or import_ns < _LEAST_SHARE * until_ns:
        return
    run_ns, standby_ns = round(import_ns * (1 - RUN_SHARE)), round(import_ns * (1 - STANDBY_SHARE))
    site = imports[0].attrs.get("site")
    yield Match(
        title=f"{seconds(import_ns)} of the first {seconds(until_ns)} are the import of TensorFlow{at(site)}",
        evidence={
            "import_ns": import_ns,
            "start_ns": until_ns,
            "modules": sum(int(span.attrs.get("modules", 0)) for span in imports),
            "with_run_saves_ns": run_ns,
            "with_standby_saves_ns": standby_ns,
            "site": site,
        },
        saves_ns=run_ns,
        remedy=Remedy(
            text=(
                f"Start it with glowplug run, without an edit: about {seconds(run_ns)} less from the second run on."
                f" From a standby (glowplug run --standby) it is about {seconds(standby_ns)} less."
            ),
            command=command,
        ),
        spans=ids(imports),
    )
