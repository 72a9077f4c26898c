"""What `make release` builds: whole, and of use away from the sources."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from .blocks import ROOT

sys.path.insert(0, str(ROOT / "docs"))
import check_release


@pytest.mark.slow
def test_a_wheel_and_an_sdist_are_built_and_good(tmp_path: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.skip("there is no uv")
    built = subprocess.run([uv, "build", "--out-dir", tmp_path], cwd=ROOT, capture_output=True, text=True)
    if built.returncode and "Failed to fetch" in built.stderr:
        pytest.skip("no package index can be reached")
    assert built.returncode == 0, built.stderr
    command = [sys.executable, ROOT / "docs" / "check_release.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("are good\n")


def test_a_wheel_that_lacks_a_page_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "glowplug-0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("glowplug-0.dist-info/METADATA", "Metadata-Version: 2.4\n")
        for name in check_release.expected() - {"glowplug/advise/pages/constant_in_graph.md"}:
            archive.writestr(name, "")
    with pytest.raises(SystemExit, match=r"the wheel lacks: glowplug/advise/pages/constant_in_graph\.md"):
        check_release.check_wheel(wheel)


def test_every_page_and_asset_is_expected() -> None:
    expected = check_release.expected()
    assert {"glowplug/py.typed", "glowplug/core/profile.schema.json", "glowplug/report/assets/page.html.j2"} <= expected
    assert sum(name.startswith("glowplug/advise/pages/") for name in expected) >= 31
