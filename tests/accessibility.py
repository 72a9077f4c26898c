"""What axe-core has against a page, in words.

The pages' own policy forbids foreign scripts: it comes in as a debugger's would.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

RUN = "() => axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations)"


def violations(page: Any) -> list[str]:
    """Return one line for each element that breaks a rule of axe-core."""
    pytest.importorskip("axe_playwright_python", reason="axe-playwright-python, which has axe-core, is not installed")
    script = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    page.evaluate(f"() => {{ const module = undefined, exports = undefined; {script} }}")
    return [
        f"{rule['id']} ({rule['impact']}): {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for rule in page.evaluate(RUN)
        for node in rule["nodes"]
    ]


def hidden_columns(page: Any) -> int:
    """Return how many pixels of a page lie beyond its right edge."""
    return int(page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth"))
