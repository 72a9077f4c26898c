"""`glowplug run` gets into a process, and into those it starts, without being seen there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ACCELERATED = "import sys; print(type(sys.meta_path[0]).__module__.startswith('glowplug'))"
# What this command line and its layers import themselves, and what people call their own files.
NAMES = (
    "abc_of_mine",
    "argparse",
    "atexit",
    "ast",
    "collections",
    "contextlib",
    "copy",
    "ctypes",
    "dataclasses",
    "enum",
    "errno",
    "functools",
    "gettext",
    "heapq",
    "importlib_of_mine",
    "inspect",
    "json",
    "keyword",
    "linecache",
    "locale",
    "logging",
    "marshal",
    "mmap",
    "operator",
    "pathlib",
    "queue",
    "random",
    "re",
    "reprlib",
    "resource",
    "select",
    "shutil",
    "signal",
    "socket",
    "statistics",
    "string",
    "struct",
    "subprocess",
    "tempfile",
    "termios",
    "test",
    "threading",
    "token",
    "tokenize",
    "types",
    "typing",
    "weakref",
    "zlib",
)


def same(one, other):
    assert (one.stdout, one.stderr, one.returncode) == (other.stdout, other.stderr, other.returncode)


def test_a_programs_own_modules_are_found_as_python_finds_them(stock, faster, tmp_path):
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text("mine = True\n")
    program = tmp_path / "program.py"
    program.write_text(f"for name in {NAMES}:\n    print(name, hasattr(__import__(name), 'mine'))\n")
    same(stock(program), faster(program))
    assert stock(program).stdout.count("True") > 30
    (tmp_path / "types.py").unlink()  # `-m` imports it from the current folder before anything of ours
    for name in ("functools", "contextlib", "collections", "operator", "keyword", "reprlib", "importlib", "warnings"):
        (tmp_path / f"{name}.py").unlink(missing_ok=True)
    same(stock(program, cwd=tmp_path), faster(program, cwd=tmp_path))


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"])
@pytest.mark.parametrize("ending", ["", "; sys.exit(3)", "; 1 / 0"])
def test_streams_that_are_closed_or_full(environment, tmp_path, closed, ending):
    out = tmp_path / "out"
    code = (
        "import sys, os; print('said')\n"
        "seen = [one is None for one in (sys.stdin, sys.stdout, sys.stderr)], sorted(os.listdir('/proc/self/fd'))\n"
        f"open({str(out)!r}, 'w').write(str(seen)){ending}"
    )
    (tmp_path / "program.py").write_text(code)
    seen = []
    for way in ("", "-m glowplug run "):
        command = f"exec {sys.executable} {way}program.py {closed}"
        done = subprocess.run(
            ["sh", "-c", command],
            env={**environment, "PYTHONUNBUFFERED": ""},
            cwd=tmp_path,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
        seen.append((done.returncode, done.stdout, done.stderr, out.exists() and out.read_text()))
        out.unlink(missing_ok=True)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("how", ["spawn", "forkserver"])
def test_processes_of_multiprocessing_are_accelerated(faster, tmp_path, how):
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing, sys\n"
        "def here(_):\n    return type(sys.meta_path[0]).__module__.startswith('glowplug')\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context({how!r}).Pool(1) as pool:\n        print(pool.map(here, [1]))\n"
    )
    assert faster(program).stdout == "[True]\n"
    assert faster("--no-children", program).stdout == "[False]\n"


def test_python_processes_are_accelerated_unless_they_are_told_otherwise(faster):
    def asked(words, options=""):
        code = f"import os, subprocess, sys; subprocess.run([sys.executable, {words}'-c', {ACCELERATED!r}]{options})"
        return code

    assert faster("-c", asked("")).stdout == "True\n"
    assert faster("-c", asked("'-u', ")).stdout == "True\n"
    assert faster("-c", asked("", ", env={**os.environ}")).stdout == "False\n"
    for flag in ("-I", "-E", "-S"):
        assert faster("-c", asked(f"{flag!r}, ")).stdout == "False\n"
    assert faster("-c", asked(""), variables={"GLOWPLUG_CHILDREN": "0"}).stdout == "False\n"
    changed = "import os; os.environ['PYTHONPATH'] = 'elsewhere'; " + asked("")
    assert faster("-c", changed).stdout == "False\n"


def test_children_of_children_and_of_a_shell_see_what_they_would(stock, faster, environment):
    shown = "import os, sys; print(sys.path[1:], sorted(one for one in os.environ.items() if one[0] not in '__SHLVL'))"
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {shown!r}])"
    shell = (
        f'PYTHONPATH=more:$PYTHONPATH {sys.executable} -c "{shown}"; unset PYTHONPATH; {sys.executable} -c "{shown}"'
    )
    for value in (None, "", environment["PYTHONPATH"]):
        variables = {"PYTHONPATH": value} if value is not None else {}
        for code in (
            shown,
            inner,
            f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])",
            f"import os; os.system({shell!r})",
        ):
            one = stock("-c", code, variables=variables, without=["PYTHONPATH"])
            other = faster("-c", code, variables=variables, without=["PYTHONPATH"])
            same(one, other)


@pytest.mark.parametrize(
    "body",
    [
        "print('custom', __name__, __file__)",
        "import no_such_module",
        "raise ValueError('x')",
        "import os; os.environ['KERAS_BACKEND'] = 'jax'; os.environ['PYTHONPATH'] = 'set'",
    ],
)
def test_another_sitecustomize_is_loaded(stock, faster, environment, tmp_path, body):
    (tmp_path / "sitecustomize.py").write_text(body)
    variables = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{environment['PYTHONPATH']}"}
    code = (
        "import os, sys\n"
        "print(sys.modules.get('sitecustomize'), os.environ.get('KERAS_BACKEND'), os.environ['PYTHONPATH'])"
    )
    once, twice = stock("-c", code, variables=variables), faster("-c", code, variables=variables)
    said = f"custom sitecustomize {tmp_path}/sitecustomize.py\n"  # by the command too, which is a Python process
    assert (twice.stdout.replace(said * 2, said), twice.returncode) == (once.stdout, once.returncode)


def test_options_of_the_interpreter_hold_for_the_program(environment):
    code = "import sys; print(sys.flags, sys._xoptions, sys.warnoptions, sys.orig_argv[1:])"
    words = ["-O", "-u", "-X", "dev", "-W", "ignore", "-B"]
    stock = subprocess.run([sys.executable, *words, "-c", code], env=environment, capture_output=True, text=True)
    for way in (["-m", "glowplug"], [str(Path(sys.executable).parent / "glowplug")]):
        done = subprocess.run(
            [sys.executable, *words, *way, "run", "-c", code], env=environment, capture_output=True, text=True
        )
        assert done.stdout == stock.stdout, done.stderr


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_an_interpreter_that_lets_nobody_in_runs_the_program_all_the_same(environment, tmp_path, flag):
    (tmp_path / "program.py").write_text("import sys; print(sys.argv, __name__); sys.exit(5)")
    code = (
        f"import sys; sys.path.insert(1, {environment['PYTHONPATH']!r})\n"
        "sys.argv = ['glowplug', 'run', '--no-standby', 'program.py', 'x']\n"
        "from glowplug.cli.main import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, flag, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("['program.py', 'x'] __main__\n", 5), done.stderr
