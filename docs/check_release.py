"""Checks a wheel and an sdist before they are published: check_release.py DIST

Both must hold what the package reads at run time, the wheel nothing but the package, and the wheel must work where only
numpy is installed. `make release` builds them and runs this.
"""

from __future__ import annotations

import email.parser
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "glowplug"
DATA = (".md", ".txt", ".j2", ".js", ".css", ".json", ".proto", ".desc", ".typed")
SOURCE_FILES = ("README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "pyproject.toml", "docs/reference/cli.md")


def expected() -> set[str]:
    """Return every file of the package, as a path in a wheel."""
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {f"glowplug/{path.relative_to(PACKAGE)}" for path in files if path.suffix in (*DATA, ".py")}


def check_wheel(wheel: Path) -> None:
    """The package whole, nothing beside it, and metadata that an index takes."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        fields = email.parser.Parser().parsestr(archive.read(metadata).decode())
    package = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    refuse("the wheel lacks", expected() - package)
    refuse("the wheel has what is none of the package", {name for name in package if not name.startswith("glowplug/")})
    refuse(
        "the metadata lack", {name for name in ("License-Expression", "Requires-Python", "Summary") if not fields[name]}
    )
    if fields["Description-Content-Type"] != "text/markdown" or "# Glowplug" not in fields.get_payload():
        sys.exit("the metadata lack the README")


def check_sdist(sdist: Path) -> None:
    """What is needed to build it again."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    refuse("the sdist lacks", {*SOURCE_FILES, *(f"src/{name}" for name in expected())} - names)


def check_works(wheel: Path) -> None:
    """Run the command from the wheel, away from the sources: help, a rule's page, a profile."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(f"{folder}/installed")
        for words in (["--version"], ["explain", "two_traces_on_first_step"], ["profile", "-c", "import json"]):
            start = f"import sys; sys.path.insert(0, '{folder}/installed'); import glowplug.cli.main as verbs"
            command = [sys.executable, "-c", f"{start}; sys.exit(verbs.main())", *words]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"glowplug {' '.join(words)} ended with {done.returncode}: {done.stderr}")


def refuse(what: str, names: set[str]) -> None:
    """Leave with a message where there are names."""
    if names:
        sys.exit(f"{what}: {', '.join(sorted(names)[:10])}")


def main() -> None:
    folder = Path(sys.argv[1])
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    check_wheel(wheel)
    check_sdist(sdist)
    check_works(wheel)
    print(f"{wheel.name} and {sdist.name} are good")


if __name__ == "__main__":
    main()
