"""Every rule is documented, tested, and has a script that shows it with a fixed twin."""

from __future__ import annotations

import ast
import re

from glowplug.advise.engine import all_rules

SECTIONS = ["## Symptom", "## Why", "## Remedy", "## How the saving is estimated"]


def test_has_a_page_with_its_sections(rule_id, repository):
    text = (repository / f"docs/reference/rules/{rule_id}.md").read_text()
    assert text.startswith(f"# `{rule_id}`\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == SECTIONS


def test_has_a_script_and_a_fixed_twin(rule_id, repository):
    folder = repository / "tests/advise/scripts" / rule_id
    for name in ("symptom.py", "fixed.py"):
        tree = ast.parse((folder / name).read_text())
        assert ast.get_docstring(tree), f"{folder / name} does not say what it shows"
    assert (folder / "symptom.py").read_text() != (folder / "fixed.py").read_text()


def test_has_a_unit_test_that_fires_and_one_that_is_silent(rule_id, repository):
    text = (repository / f"tests/advise/rules/test_{rule_id}.py").read_text()
    assert f'make.match("{rule_id}")' in text
    assert f'make.matches("{rule_id}") == []' in text


def test_index_lists_exactly_the_rules(repository):
    index = (repository / "docs/reference/rules/index.md").read_text()
    listed = dict(re.findall(r"^\| \[`(\w+)`\]\(\w+\.md\) \| (.+?) \|", index, re.M))
    assert listed == {rule.id: rule.symptom for rule in all_rules()}


def test_no_page_or_script_without_a_rule(repository):
    ids = {rule.id for rule in all_rules()}
    pages = {path.stem for path in (repository / "docs/reference/rules").glob("*.md")} - {"index"}
    scripts = {path.name for path in (repository / "tests/advise/scripts").iterdir() if path.is_dir()}
    assert pages == ids
    assert scripts - {"tidy"} == ids
