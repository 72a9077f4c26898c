"""What users of the command line meet says what to do next."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import glowplug
from glowplug.core import errors

SOURCE = Path(glowplug.__file__).parent
MODULES = sorted(
    [
        *(path for folder in ("cli", "bundle", "probe", "core") for path in (SOURCE / folder).rglob("*.py")),
        *(SOURCE / "convert" / name for name in ("pack.py", "source/sources.py", "calls/warmup_files.py")),
    ]
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_every_error_has_a_remedy(path: Path) -> None:
    tree = ast.parse(path.read_text())
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = {one.name for node in imported if node.module == "glowplug.core.errors" for one in node.names}
    kinds = {name for name in ours if isinstance(kind := getattr(errors, name), type) and issubclass(kind, Exception)}
    without = [
        f"{path.name}:{node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds
        if not {"remedy", None} & {word.arg for word in node.keywords}
    ]
    assert without == []
