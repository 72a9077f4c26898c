"""What the text of a program tells about the variables it sets, and what a standby makes of it."""

from __future__ import annotations

import pytest

from glowplug.standby.child.variables import Setting, UnclearError, settings


@pytest.mark.parametrize(
    "line",
    [
        "print(os.environ['KERAS_BACKEND'], os.environ.get('X', 1), 'Y' in os.environ)",
        "subprocess.run([], env=os.environ); subprocess.run([], env={**os.environ, 'KERAS_BACKEND': 'jax'})",
        "env = os.environ.copy(); env['KERAS_BACKEND'] = 'jax'",
        "env = dict(os.environ, KERAS_BACKEND='jax')",
        "for name in os.environ: print(name)",
        "print([n for n in os.environ if os.getenv(n)], f'{os.environ}', sorted(os.environ))",
        "this is no Python, os.environ",
    ],
)
def test_reading_sets_nothing(line, tmp_path):
    assert settings(f"import os, subprocess\n{line}\n".encode(), str(tmp_path)) == set()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("os.environ['A'] = 'b'", {Setting("A", "b")}),
        ("environ['A'] = str(1)", {Setting("A", None)}),
        ("os.environb[b'A'] = b'b'", {Setting("A", "b")}),
        ("os.environ.setdefault('A', 'b')", {Setting("A", "b")}),
        ("os.environ.pop('A')", {Setting("A", None)}),
        ("del os.environ['A']", {Setting("A", None)}),
        ("os.environ.update({'A': 'b'}, C='d')", {Setting("A", "b"), Setting("C", "d")}),
        ("os.environ.update(A=f(), C='d')", {Setting("A", None), Setting("C", "d")}),
        ("os.putenv('A', 'b')", {Setting("A", "b")}),
        ("os.environ['A'] += 'b'", {Setting("A", None)}),
        ("with open('f'):\n    if 1:\n        os.environ['A'] = 'b'", {Setting("A", "b")}),
    ],
)
def test_what_is_set_by_its_name_is_found(line, found, tmp_path):
    assert settings(f"import os\nfrom os import environ\n{line}\n".encode(), str(tmp_path)) == found


@pytest.mark.parametrize(
    "line",
    [
        "os.environ[name] = 'b'",
        "e = os.environ\ne['KERAS_BACKEND'] = 'jax'",
        "configure(os.environ)",
        "os.environ.update(settings)",
        "os.environ.update(**settings)",
        "os.environ |= settings",
        "os.environ = {}",
        "os.environ.clear()",
        "os.putenv(name, 'b')",
        "setattr(os.environ, 'x', 1)",
        "from dotenv import load_dotenv",
        "import dotenv",
    ],
)
def test_what_cannot_be_told_is_unclear(line, tmp_path):
    with pytest.raises(UnclearError):
        settings(f"import os\n{line}\n".encode(), str(tmp_path))


@pytest.mark.parametrize(
    ("statement", "file"),
    [
        ("import helper", "helper.py"),
        ("import os, helper as h", "helper.py"),
        ("from helper import *", "helper.py"),
        ("from package.helper import x", "package/helper.py"),
        ("from package import helper", "package/helper.py"),
        ("import package.deep.helper", "package/deep/__init__.py"),
        ("import importlib; importlib.import_module('helper')", "helper.py"),
        ("import middle", "helper.py"),
        ("from package import relative", "package/helper.py"),
    ],
)
def test_modules_beside_the_program_are_looked_at(statement, file, tmp_path):
    (tmp_path / "package/deep").mkdir(parents=True)
    (tmp_path / "middle.py").write_text("def f():\n    import helper\n")
    (tmp_path / "package/relative.py").write_text("from . import helper\n")
    (tmp_path / file).write_text("import os\nos.environ['KERAS_BACKEND'] = 'jax'\n")
    assert settings(statement.encode(), str(tmp_path)) == {Setting("KERAS_BACKEND", "jax")}


HELPER = "import os\nos.environ['KERAS_BACKEND'] = {!r}\n"


def test_a_helper_that_sets_the_backend_means_a_plain_start(standby):
    standby.script(HELPER.format("jax"), "helper.py")
    done = standby.run(standby.script("import helper"))
    assert done.stderr == "not run: the program itself sets KERAS_BACKEND, which is read at import\n"
    assert "sets KERAS_BACKEND" in standby.run("-m", "helper").stderr


def test_a_variable_that_is_in_use_already_may_be_set(standby):
    standby.environment["KERAS_BACKEND"] = "jax"
    standby.script(HELPER.format("jax"), "helper.py")
    assert standby.run(standby.script("import helper; print('ran')")).stdout == "ran\n"


def test_a_variable_that_only_new_processes_read_may_be_set(standby):
    code = "import os; os.environ['PYTHONHASHSEED'] = '0'; os.environ['MY_OWN'] = '1'; print('ran')"
    assert standby.run("-c", code).stdout == "ran\n"


def test_a_program_from_standard_input_gets_a_plain_start(standby):
    assert "not run: a program that comes through standard input" in standby.run("-", input="print(1)").stderr
