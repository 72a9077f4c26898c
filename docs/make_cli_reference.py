"""Writes docs/reference/cli.md from the command line's own parsers: make_cli_reference.py [--check]

The page is built from the options themselves, not from argparse's help text, whose layout changes between releases of
Python.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from glowplug.cli.main import VERBS, build_parser  # noqa: E402

TARGET = ROOT / "docs" / "reference" / "cli.md"
HEAD = """\
# The command line

<!-- written by docs/make_cli_reference.py: edit the verbs in src/glowplug/cli instead -->

`glowplug VERB --help` says the same. Every verb prints results on stdout, or one JSON document with `--json`; notes,
progress and errors go to stderr. An error is one line: what failed, the value seen, what to do next. With
`GLOWPLUG_DEBUG=1` the traceback is shown as well. What writes a file refuses to overwrite one without `--force`.

| exit code | meaning |
| --- | --- |
| 0 | good |
| 1 | a check failed where the verb was asked to check |
| 2 | wrong usage |
| 3 | a bad model, bundle or input |
| 4 | storage: a file could not be read or written |
| 5 | runtime: TensorFlow's library is missing, unsuitable or refused a call |
| 130, 143 | interrupted, terminated; nothing half-written is left |
"""


def verb_parser(name: str) -> argparse.ArgumentParser:
    parser = build_parser([name])
    choices = next(action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return choices[name]


def section(name: str) -> str:
    module = import_module(VERBS[name][0])
    parser = verb_parser(name)
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS and action.dest != "help"]
    lines = [f"## `glowplug {name}`", "", f"{module.HELP[0].upper()}{module.HELP[1:]}.", ""]
    lines += ["```console", *(f"$ {line}" for line in module.EXAMPLE.strip().splitlines()), "```", ""]
    lines += ["| argument | meaning |", "| --- | --- |"]
    for action in actions:
        lines.append(f"| {spelling(action)} | {' '.join((action.help or '').split()).replace('|', chr(92) + '|')} |")
    return "\n".join(lines)


def spelling(action: argparse.Action) -> str:
    value = action.metavar or (f"{{{','.join(action.choices)}}}" if action.choices else "")
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    names = ", ".join(f"`{option}{f' {value}' if value else ''}`" for option in action.option_strings)
    return f"{names} (required)" if action.required else names


def main() -> int:
    text = "\n\n".join([HEAD.rstrip(), *(section(name) for name in VERBS)]) + "\n"
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
            sys.exit(f"{TARGET.relative_to(ROOT)} is out of date: run `make docs`")
        return 0
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
