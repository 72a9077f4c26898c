"""Lets Glowplug into a Python process, before the program and with nothing of the program's to be seen.

The folder of this file is an entry of PYTHONPATH, put there by `glowplug run` (`launch/interpreter.py`) and inherited
by the processes that the program starts. The entry after it is a path below it that does not exist, and that says what
is wanted: a few letters, and the interpreter that is meant. Any Python imports a module of this name before anything
else; one that is not the one meant loads nothing of ours. Another `sitecustomize` is loaded after this one; where there
is none it ends with the error that `site` expects, as if it were not there itself.
"""

import os
import sys


def _enter(entry):
    # type: (str) -> None
    below = entry + "/"
    paths = os.environ.pop("PYTHONPATH", entry).split(os.pathsep)
    note = "".join([path[len(below) :] for path in paths if path.startswith(below)][:1])
    letters, _, identity = note.partition(" ")
    # `u` and `e`: the entry stands for a variable that was unset or empty. A shell that writes `x:$PYTHONPATH` adds the
    # current folder then.
    paths = [path for path in paths if not path.startswith(below)]
    stood_for_nothing = ("u" in letters or "e" in letters) and len(paths) > 1
    value = [path if path != entry else "" for path in paths if path != entry or stood_for_nothing]
    if value or "e" in letters:
        os.environ["PYTHONPATH"] = os.pathsep.join(value)
    here = [os.getcwd()] if stood_for_nothing else []
    kept = [path for path in sys.path if not path.startswith(below)]
    sys.path[:] = [one for path in kept for one in (here if path == entry else [path])]
    for path in [path for path in sys.path_importer_cache if path == entry or path.startswith(below)]:
        del sys.path_importer_cache[path]
    if sys.version_info < (3, 10) or identity != sys.implementation.cache_tag + " " + sys.prefix:
        return
    root = os.path.dirname(os.path.dirname(os.path.dirname(entry)))
    seen = "__future__" in sys.modules
    sys.path.insert(0, root)
    try:
        from glowplug.launch.entering import enter
    finally:
        sys.path.remove(root)
        if not seen:
            sys.modules.pop("__future__", None)
    enter(letters)


try:
    _enter(os.path.dirname(os.path.abspath(__file__)))
except Exception as error:  # the process boundary: a program is never kept from starting
    if sys.stderr is not None:
        sys.stderr.write("glowplug: run: a plain start: " + type(error).__name__ + ": " + str(error) + "\n")

sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
except ImportError as error:
    if getattr(error, "name", "sitecustomize") != "sitecustomize":
        raise
if getattr(sys.modules.get("sitecustomize"), "__dict__", None) in (None, globals()):
    missing = ImportError("No module named 'sitecustomize'")
    missing.name = "sitecustomize"
    raise missing
