"""A program under `glowplug run` sees, says and ends as it would under Python."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SURROUNDINGS = Path(__file__).parent / "targets" / "surroundings.py"

ENDINGS = {
    "normal": "print(1)",
    "exit": "import sys; sys.exit()",
    "code": "raise SystemExit(7)",
    "big code": "raise SystemExit(300)",
    "text": "import sys; sys.exit('no good')",
    "error": "def f():\n    return 1 / 0\nf()",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('later') from e",
    "syntax": "print(1\nx =",
    "interrupt": "raise KeyboardInterrupt",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "hard": "import os; os._exit(9)",
    "hook": "import sys\nsys.excepthook = lambda k, v, t: print('hook', k, t.tb_lineno, t.tb_next)\nraise OSError('x')",
    "atexit": "import atexit; atexit.register(print, 'bye'); raise ValueError",
    "import error": "import no_such_module_here",
    "stdin": "print(input())",
}


@pytest.mark.parametrize("arguments", [(), ("a", "--explain", "-m", "--", "b c")])
def test_a_script_sees_the_same(stock, faster, tmp_path, arguments):
    link = tmp_path / "link.py"
    link.symlink_to(SURROUNDINGS)
    for script in (SURROUNDINGS, os.path.relpath(SURROUNDINGS, tmp_path), "link.py"):
        one, other = stock(script, *arguments, cwd=tmp_path), faster(script, *arguments, cwd=tmp_path)
        assert (one.stdout, one.stderr, one.returncode) == (other.stdout, other.stderr, other.returncode)


def test_a_module_a_folder_and_a_zip_file_see_the_same(stock, faster, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(SURROUNDINGS.read_text())
    subprocess.run([sys.executable, "-m", "zipfile", "-c", "app.zip", "package/__main__.py"], cwd=tmp_path, check=True)
    for words in (("-m", "package", "-c", "x"), ("package", "y"), ("-m", "json.tool", "missing")):
        one, other = stock(*words, cwd=tmp_path), faster(*words, cwd=tmp_path)
        assert (one.stdout, one.stderr, one.returncode) == (other.stdout, other.stderr, other.returncode)


@pytest.mark.parametrize("name", ENDINGS)
def test_a_program_ends_the_same(stock, faster, tmp_path, name):
    script = tmp_path / "program.py"
    script.write_text(ENDINGS[name])
    one, other = stock(script, input="typed\n"), faster(script, input="typed\n")
    assert (one.stdout, one.stderr, one.returncode) == (other.stdout, other.stderr, other.returncode)


@pytest.mark.parametrize("name", ["normal", "error", "syntax", "text", "interrupt"])
def test_code_and_standard_input_end_the_same(stock, faster, name):
    one, other = stock("-c", ENDINGS[name], "x"), faster("-c", ENDINGS[name], "x")
    assert (one.stdout, one.stderr, one.returncode) == (other.stdout, other.stderr, other.returncode)
    one, other = stock("-", input=ENDINGS[name]), faster("-", input=ENDINGS[name])
    assert (one.stdout, one.stderr, one.returncode) == (other.stdout, other.stderr, other.returncode)


def test_children_made_by_multiprocessing_find_the_program(stock, faster, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import multiprocessing\n"
        "def square(x):\n    return x * x\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n        print(pool.map(square, [3]))\n"
    )
    done = faster(script)
    assert (done.stdout, done.returncode) == ("[9]\n", 0)


def test_an_interrupt_reaches_the_program(environment):
    code = "import time\nprint('ready', flush=True)\nwhile True:\n    time.sleep(0.01)"
    command = [sys.executable, "-m", "glowplug", "run", "-c", code]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith(b"KeyboardInterrupt")
    assert b"glowplug" not in errors
