"""The frame around the verbs: help, exit codes, errors in one line, and what is imported for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import types
from importlib import import_module
from pathlib import Path

import pytest

from glowplug.cli import main as cli
from glowplug.cli import run
from glowplug.cli.main import build_parser
from glowplug.cli.options import program_words
from glowplug.core.errors import DigestError, GlowplugError, StorageError
from glowplug.core.version import VERSION

HEAVY = {"numpy", "tensorflow", "keras", "rich", "jinja2", "ctypes", "asyncio"}


def loaded_modules(environment, *arguments):
    """Return what a run of the command has imported by its end."""
    code = (
        "import sys\nfrom glowplug.cli.main import main\n"
        f"try:\n    main({list(arguments)!r})\nexcept SystemExit: pass\n"
        "print('MODULES', *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    last = done.stderr.splitlines()[-1].split()
    assert last[0] == "MODULES"
    return set(last[1:])


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_help_imports_no_verb_and_nothing_heavy(environment, arguments):
    modules = loaded_modules(environment, *arguments)
    assert not modules & HEAVY
    ours = {name for name in modules if name.startswith("glowplug")}
    assert ours == {
        "glowplug",
        "glowplug.cli",
        "glowplug.cli.main",
        "glowplug.core",
        "glowplug.core.errors",
        "glowplug.cli.options",
        "glowplug.cli.streams",
        "glowplug.core.version",
    }


@pytest.mark.parametrize("verb", cli.VERBS)
def test_a_verbs_help_imports_that_verb_alone(environment, verb):
    modules = loaded_modules(environment, verb, "--help")
    assert not modules & HEAVY
    others = {module for name, (module, _) in cli.VERBS.items() if name != verb}
    assert cli.VERBS[verb][0] in modules
    assert not modules & others


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_follows_the_protocol(verb, call):
    module_name, help_line = cli.VERBS[verb]
    module = import_module(module_name)
    assert verb == module.NAME
    assert help_line == module.HELP
    assert "\n" not in help_line
    assert all(line.startswith(f"glowplug {verb}") for line in module.EXAMPLE.strip().splitlines())
    code, out, err = call(verb, "--help")
    assert (code, err) == (0, "")
    assert module.EXAMPLE.strip().splitlines()[0] in out
    assert "--json" in out
    assert "exit codes" in out


def test_every_verb_module_is_in_the_table():
    declared = {module for module, _ in cli.VERBS.values()}
    for path in Path(cli.__file__).parent.glob("*.py"):
        if path.stem != "__init__":
            module = import_module(f"glowplug.cli.{path.stem}")
            assert hasattr(module, "NAME") == (module.__name__ in declared), path.name


def test_help_lists_every_verb(call):
    code, out, _ = call("--help")
    assert code == 0
    for verb in cli.VERBS:
        assert f"\n    {verb} " in out


def test_version(call):
    assert call("--version") == (0, f"glowplug {VERSION}\n", "")


def test_no_verb_is_a_usage_error_that_shows_the_help(call):
    code, out, _ = call()
    assert code == 2
    assert out.startswith("usage: glowplug")


@pytest.mark.parametrize("arguments", [["warm"], ["pack"], ["pack", "model"], ["predict", "b", "--repeat", "-1"]])
def test_wrong_usage_exits_with_2(call, arguments):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert "; see glowplug" in err
    assert err.count("\n") == 1


def pretend_verb(monkeypatch, run):
    """Put a verb into the table that does what a test wants."""
    module = types.ModuleType("glowplug.cli.pretended")
    module.NAME, module.HELP, module.EXAMPLE = "pretended", "pretend", "glowplug pretended"
    module.add_arguments = lambda parser: None
    module.run = run
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(cli.VERBS, "pretended", (module.__name__, module.HELP))


def raising(error):
    def run(args):
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (GlowplugError("it failed", seen=3, remedy="try again"), 5, "it failed: 3; try again"),
        (DigestError("wrong bytes"), 3, "wrong bytes"),
        (StorageError("two\nlines\n"), 4, "two lines"),
        (
            OSError(28, "No space left on device", "disk"),
            4,
            "No space left on device: disk; make room on that disk, or name another place",
        ),
        (ZeroDivisionError("oh"), 5, "unexpected ZeroDivisionError: oh; set GLOWPLUG_DEBUG=1 for the traceback"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_errors_are_one_line_with_their_exit_code(call, monkeypatch, error, code, text):
    pretend_verb(monkeypatch, raising(error))
    assert call("pretended") == (code, "", f"glowplug: {text}\n")


def test_debug_shows_the_traceback(call, monkeypatch):
    pretend_verb(monkeypatch, raising(ZeroDivisionError("oh")))
    monkeypatch.setenv("GLOWPLUG_DEBUG", "1")
    code, _, err = call("pretended")
    assert code == 5
    assert "Traceback" in err
    assert err.endswith("glowplug: unexpected ZeroDivisionError: oh\n")


def test_the_exit_code_of_a_verb_is_passed_on(call, monkeypatch):
    pretend_verb(monkeypatch, lambda args: 1)
    assert call("pretended") == (1, "", "")


def test_sigterm_is_handled_during_a_verb_and_not_after(call, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    cleaned = []

    def run(args):
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            cleaned.append(True)
        return 0

    pretend_verb(monkeypatch, run)
    assert call("pretended")[0] == 143
    assert cleaned == [True]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_closed_pipe_is_quiet(environment):
    """The reader goes away before anything is written."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "glowplug", "doctor", "--json"],
        env=environment,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    ("words", "program"),
    [
        ("run --explain script.py --explain -m x -- y", "script.py --explain -m x -- y"),
        ("run --no-standby -m package -- -m -c --json", "-m package -- -m -c --json"),
        ("run -c code -c -m --", "-c code -c -m --"),
        ("run --json-file f - --no-imports", "- --no-imports"),
        ("run -mpackage -x", "-m package -x"),
        ("run", ""),
        ("profile -o p.json --html=h.html --repeat 3 --cold s.py -o x", "s.py -o x"),
        ("profile --repeat 2 -- ls -- -l", "-- ls -- -l"),
    ],
)
def test_all_words_from_the_program_on_are_the_programs(words, program):
    args = build_parser(words.split()).parse_args(words.split())
    assert program_words(args) == program.split()


@pytest.mark.parametrize(
    "words",
    [
        "script.py --explain",
        "--explain -m package --no-standby",
        "--no-imports --no-prefetch --no-trace-cache --no-children -c code",
        "--standby - x",
        "--no-standby --standby script.py",
    ],
)
def test_a_plain_command_line_of_run_means_what_the_parser_reads(words, monkeypatch):
    prepared = []
    monkeypatch.setattr(run, "_prepare", lambda program, **switches: prepared.append((program, switches)))
    run.run_plain(words.split())
    run.run(build_parser(["run"]).parse_args(["run", *words.split()]))
    (program, switches), (parsed_program, parsed) = prepared
    assert program == parsed_program
    defaults = {name: None if name == "standby" else False for name, _ in run._SWITCHES.values()}
    assert parsed.pop("json_file") is None
    assert {**defaults, **switches} == parsed


@pytest.mark.parametrize("words", ["", "--help", "--expl script.py", "-mpackage", "-- script.py", "--standby=1 x.py"])
def test_any_other_command_line_of_run_is_left_to_the_parser(words):
    assert run.run_plain(words.split()) is None


def test_every_switch_of_run_is_known_to_both(environment):
    modules = loaded_modules(environment, "run", "no-such-script.py")
    assert "argparse" not in modules
    parser = build_parser(["run"])
    verb = next(action for action in parser._actions if action.dest == "==SUPPRESS==" or action.choices).choices["run"]
    switches = {name for action in verb._actions for name in action.option_strings if name.startswith("--")}
    assert switches - {"--help", "--json", "--json-file"} == set(run._SWITCHES)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("profil x.py", "glowplug: there is no verb 'profil' (did you mean profile?); see glowplug --help\n"),
        ("nonsense", "glowplug: there is no verb 'nonsense'; see glowplug --help\n"),
        ("pack m -o b --engin native --forse", "--forse (did you mean --force?); see glowplug pack --help\n"),
        ("budget p.json --maxi 2s", "--maxi 2s (did you mean --max?); see glowplug budget --help\n"),
        ("profile --calles x.py", "--calles (did you mean --calls?); see glowplug profile --help\n"),
        ("doctor x", "glowplug doctor: unrecognized arguments: x; see glowplug doctor --help\n"),
        ("standby stat", "(did you mean start?); see glowplug standby --help\n"),
        ("cache prune --max-bytes -1", "see glowplug cache --help\n"),
        ("cache prune --older-than nan", "a number from 0 on is needed, not 'nan'; see glowplug cache --help\n"),
        ("standby start --idle -1", "a number from 0 on is needed, not '-1'; see glowplug standby --help\n"),
        ("bench m --limit inf", "a number from 0 on is needed, not 'inf'; see glowplug bench --help\n"),
        ("run --json x.py", "name a file for the document with --json-file FILE; see glowplug run --help\n"),
    ],
)
def test_the_parser_says_what_is_wrong_in_one_line(words, said, call):
    code, out, err = call(*words.split())
    assert (code, out) == (2, "")
    assert err.endswith(said)
    assert err.count("\n") == 1


def test_a_verb_without_a_name(call):
    assert call("") == (2, "", "glowplug: there is no verb ''; see glowplug --help\n")


@pytest.mark.parametrize("place", [".", "..", "/"])
def test_keys_are_no_folder(place, call):
    code, out, err = call("keygen", place)
    assert (code, out) == (2, "")
    assert err == f"glowplug: the output is a folder: {place}; name a file\n"


def test_only_what_an_argument_takes_is_proposed_for_it(call):
    """`node` is a value of another option."""
    code, _, err = call("cache", "nope")
    assert (code, "did you mean" in err) == (2, False)


@pytest.mark.parametrize("words", [("keygen", ""), ("profile", "-o", "", "x.py"), ("report", "p.json", "--html", "")])
def test_a_file_without_a_name_is_not_the_folder_that_one_is_in(words, call):
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert "it needs a name: this one is empty" in err
