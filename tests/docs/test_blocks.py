"""Every fenced block of the documentation is run, checked, or marked as output. Nothing slips through."""

from __future__ import annotations

import json
import re

import pytest

from glowplug.cli.budget_settings import read_settings
from glowplug.cli.main import build_parser

from .blocks import ROOT, all_blocks, pages, rule_snippets
from .commands import Command, all_commands, extras

BLOCKS = all_blocks()
# python and console are run (test_running), yaml is run line by line, json and toml are read, text is output.
LANGUAGES = {"python", "console", "yaml", "json", "toml", "text"}
COMMANDS = all_commands()


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_says_what_it_is(block, tmp_path):
    assert block.language in LANGUAGES, "a block that is not run is marked as text"
    if block.language == "json":
        json.loads(block.text)
    if block.language == "toml":
        read_budget(block.text, tmp_path)
    for used in re.findall(r"uses: glowplug/glowplug/(\S+)@", block.text):
        yaml = pytest.importorskip("yaml")
        action = yaml.safe_load((ROOT / used / "action.yml").read_text())
        steps = yaml.safe_load(block.text)
        given = next(step["with"] for step in steps if used in step["uses"])
        assert set(given) <= set(action["inputs"])
    if block.language == "console":
        assert block.text.startswith("$ ")
    if block.language == "text":
        assert not block.text.startswith("$ ")


def read_budget(text, folder):
    """Read settings as the command does, which refuses what it does not know."""
    (folder / "pyproject.toml").write_text(text)
    assert read_settings(folder / "pyproject.toml").limits.max_start == 30_000_000_000


def test_finds_every_fence():
    """A fence that the pattern does not see would not be run."""
    for path in pages():
        fences = re.findall(r"^ *```", path.read_text(), re.M)
        assert len(fences) == 2 * sum(block.page == str(path.relative_to(ROOT)) for block in BLOCKS), path


def test_finds_the_code_of_every_rule():
    for path in (ROOT / "src/glowplug/advise/rules").glob("*.py"):
        mine = [block for block in rule_snippets() if block.page.endswith(f"/{path.name}")]
        assert len(mine) == len(re.findall(r"^_\w*CODE = ", path.read_text(), re.M)), path


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_command_is_one_that_there_is(command: Command):
    words = command.glowplug_words
    if words is not None:
        build_parser(words).parse_args(words)  # leaves through SystemExit where an option does not exist
    if command.elsewhere is not None:
        path, word = command.elsewhere
        assert word in (ROOT / path).read_text()
    if command.installs:
        assert set(re.findall(r"\w+", " ".join(re.findall(r"(?:glowplug|\.)\[([\w,]+)\]", command.text)))) <= extras()
        assert "glowplug[" not in command.text.replace("'glowplug[", ""), "brackets need quotes in zsh"
    for target in re.findall(r"^make ([\w-]+)", command.text):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)
