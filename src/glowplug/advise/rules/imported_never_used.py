"""TensorFlow was imported and then nothing was computed with it."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.family import FAMILY
from glowplug.advise.match import WORTH_NS, Match
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import at, seconds
from glowplug.core.profile import Remedy

SYMPTOM = "TensorFlow is imported and never used"

_CODE = """\
def train():
    import tensorflow as tf  # where it is needed, not at the top of the module
    ..."""


def find(view: View) -> Iterator[Match]:
    """Report the import of a program that finished without starting the runtime."""
    profile = view.profile
    environment = profile.environment
    if environment.get("runtime_used", True) or profile.exit_code != 0:
        return
    if environment.get("keras_backend", "tensorflow") != "tensorflow":
        return  # Keras asked for it and runs elsewhere: the program cannot defer what it did not import
    for span in view.imports_of("tensorflow"):
        if span.pid != profile.root_pid:
            continue
        around = [above for above in view.ancestors(span) if above.kind == "module" and above.name in FAMILY]
        outer = around[-1] if around else span
        exits = [each for each in view.of_kind("exit") if each.pid == span.pid]
        saves_ns = outer.duration_ns + total_ns(exits)
        if saves_ns < WORTH_NS:
            continue
        importer = environment.get("tensorflow_importer") or {}
        site = importer.get("site", outer.attrs.get("site"))
        yield Match(
            title=f"TensorFlow was imported in {seconds(outer.duration_ns)} and never used{at(site)}",
            evidence={
                "import_ns": outer.duration_ns,
                "exit_ns": total_ns(exits),
                "modules": outer.attrs.get("modules"),
                "imported_by": importer.get("module"),
                "chain": importer.get("chain"),
                "site": site,
            },
            saves_ns=saves_ns,
            remedy=Remedy(text="Import TensorFlow inside the functions that need it.", code=_CODE),
            spans=ids([outer, *exits]),
        )
