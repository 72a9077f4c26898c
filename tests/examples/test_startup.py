"""The start-up questions: every script is answered on the page, and every answer has its excerpt."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples/startup"
PAGE = (ROOT / "docs/explanation/startup-questions.md").read_text()
SHARED = {"make_models", "make_answers", "encoder", "remote_storage"}
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in SHARED)


def test_page_shows_exactly_the_examples():
    assert sorted(re.findall(r"<!-- profile (\w+) -->", PAGE)) == EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_has_an_excerpt_that_the_script_wrote(name):
    (found,) = re.findall(rf"<!-- profile {name} -->\n(.*?)<!-- end -->", PAGE, re.S)
    assert found.startswith("```text\nwall time ")
    assert re.search(r"^  import +\d", found, re.M)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_says_what_it_shows(path):
    assert ast.get_docstring(ast.parse(path.read_text()))
