"""What holds for the package as a whole: light imports, exact exports, and documentation for everything."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import glowplug
from glowplug.cli.main import VERBS
from glowplug.core import errors

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE), "TF_CPP_MIN_LOG_LEVEL": "3"}
MAY_IMPORT_TENSORFLOW = ("glowplug.convert", "glowplug.train")


def all_modules() -> list[str]:
    return [module.name for module in pkgutil.walk_packages(glowplug.__path__, "glowplug.")]


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_imports_alone():
    """Each in an interpreter that has imported nothing of ours; only the light ones are worth a process each."""
    light = [name for name in all_modules() if not name.startswith(MAY_IMPORT_TENSORFLOW)]
    assert len(light) > 40
    code = """
import os, sys
for name in sys.argv[1:]:
    child = os.fork()
    if not child:
        try:
            __import__(name)
        except BaseException as error:
            print(name, repr(error), file=sys.stderr)
            os._exit(1)
        heavy = {"tensorflow", "keras"} & set(sys.modules)
        if heavy:
            print(name, "imports", *heavy, file=sys.stderr)
        os._exit(bool(heavy))
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit(name)
"""
    done = subprocess.run([sys.executable, "-c", code, *light], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.tensorflow
def test_every_module_that_needs_tensorflow_imports():
    heavy = [name for name in all_modules() if name.startswith(MAY_IMPORT_TENSORFLOW)]
    assert "glowplug.convert.pack" in heavy
    run_python("\n".join(f"import {name}" for name in heavy))


def test_importing_the_package_loads_nothing_else():
    before = set(run_python("import sys; print(*sys.modules)").split())
    after = set(run_python("import glowplug, sys; print(*sys.modules)").split())
    extra = {name for name in after - before if name.startswith("glowplug") or name in sys.modules}
    assert {name for name in extra if name.startswith("glowplug")} == {"glowplug"}
    assert not extra & {"numpy", "tensorflow", "keras", "rich", "jinja2", "ctypes", "argparse", "json", "asyncio"}
    library = sys.stdlib_module_names
    assert {name.partition(".")[0] for name in extra} - {"glowplug"} <= library


def test_loading_a_model_needs_no_more_than_numpy():
    code = "import sys, glowplug; glowplug.load, glowplug.Model; print(*sys.modules)"
    loaded = {name.partition(".")[0] for name in run_python(code).split()}
    assert not loaded & {"tensorflow", "keras", "asyncio", "argparse", "google", "ml_dtypes"}


def test_all_is_exact():
    assert len(set(glowplug.__all__)) == len(glowplug.__all__)
    for name in glowplug.__all__:
        assert getattr(glowplug, name) is not None
    assert set(glowplug.__all__) == set(glowplug._HOMES)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = glowplug.nothing


def test_type_checkers_see_every_export():
    """The imports under TYPE_CHECKING must name what `__getattr__` finds."""
    tree = ast.parse((SOURCE / "glowplug" / "__init__.py").read_text())
    seen = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and ("." in node.module or node.level):
            seen |= {alias.asname or alias.name for alias in node.names}
    assert set(glowplug.__all__) - {"__version__"} <= seen


@pytest.mark.parametrize("name", ["cluster", "train"])
def test_a_layer_that_users_import_has_every_name_it_announces(name):
    """Without Ray: a name is found where the table says that it is."""
    layer = importlib.import_module(f"glowplug.{name}")
    assert set(layer.__all__) == set(layer._PLACES)
    for one in layer.__all__:
        assert getattr(layer, one) is not None


def test_a_module_that_is_named_in_a_string_is_there():
    """What another process imports by name: no checker follows it when a module moves."""
    modules, seen = {*all_modules(), "glowplug"}, 0
    for path in (SOURCE / "glowplug").rglob("*.py"):
        for name in named_in_strings(ast.parse(path.read_text())):
            assert name in modules, f"{path.name} names {name}"
            seen += 1
    assert seen > 5


def named_in_strings(tree: ast.AST) -> Iterator[str]:
    """Yield the modules of ours that a piece of code in a string imports, or that a command runs with `-m`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\b(?:import|from) (glowplug(?:\.[a-z_0-9]+)*)", node.value)
        elif isinstance(node, ast.List | ast.Tuple):
            words = [one.value if isinstance(one, ast.Constant) else None for one in node.elts]
            for flag, name in pairwise(words):
                if flag == "-m" and isinstance(name, str) and name.startswith("glowplug"):
                    yield name


def test_every_layer_package_is_empty():
    for path in (SOURCE / "glowplug").glob("*/__init__.py"):
        if path.parent.name not in ("cluster", "train"):  # users import these: docs/decisions/0020, 0130
            assert path.read_text() == "", path


def test_every_verb_is_documented():
    reference = (ROOT / "docs" / "reference" / "cli.md").read_text()
    for verb in VERBS:
        assert f"\n## `glowplug {verb}`\n" in reference


def test_every_error_is_documented():
    reference = (ROOT / "docs" / "reference" / "errors.md").read_text()
    classes = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.GlowplugError)]
    for one in classes:
        assert f"`{one.__name__}`" in reference
        assert one.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize(
    "script", ["docs/make_cli_reference.py", "docs/make_error_reference.py", "bench/readme_table.py"]
)
def test_generated_documentation_is_up_to_date(script):
    done = subprocess.run([sys.executable, ROOT / script, "--check"], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_export_is_documented():
    reference = (ROOT / "docs" / "reference" / "python.md").read_text()
    for name in glowplug.__all__:
        assert f"glowplug.{name}" in reference


def test_links_between_documents_lead_somewhere():
    import re

    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    assert len(documents) > 15
    for document in documents:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name} -> {target}"
