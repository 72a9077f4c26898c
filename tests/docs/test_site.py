"""The documentation as a site: every page, and no link that leads nowhere."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .blocks import ROOT

sys.path.insert(0, str(ROOT / "docs"))
import site_hooks


@pytest.mark.parametrize(
    ("folder", "link", "made"),
    [
        ("", "docs/how-to/run.md", "how-to/run.md"),
        ("", "docs/decisions/", site_hooks.REPOSITORY + "docs/decisions"),
        ("", "LICENSE", site_hooks.REPOSITORY + "LICENSE"),
        ("docs/how-to", "fleet.md", "fleet.md"),
        ("docs/how-to", "../../examples/fleet/bake.sh", site_hooks.REPOSITORY + "examples/fleet/bake.sh"),
        ("docs/how-to", "../../README.md", "../index.md"),
        ("docs/how-to", "https://example.org/a.md", "https://example.org/a.md"),
    ],
)
def test_links_lead_where_they_did(folder, link, made):
    assert site_hooks.relinked(f"see [it]({link}).", ROOT, folder) == f"see [it]({made})."


def test_code_is_left_alone():
    text = "```python\ny = f[0](x)\n```\n"
    assert site_hooks.relinked(text, ROOT, "docs/how-to") == text


def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs-material is not installed")
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "reference" / "rules" / "two_traces_on_first_step" / "index.html").is_file()
    assert "cold start" in (tmp_path / "site" / "index.html").read_text()
