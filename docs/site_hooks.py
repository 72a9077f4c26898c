"""What the site needs beside the Markdown, which is the same that is read in the repository.

The README is the first page. Links that lead out of `docs` lead to the repository.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

REPOSITORY = "https://github.com/glowplug/glowplug/blob/main/"
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.M | re.S)


def on_files(files: Any, config: Any) -> Any:
    """Make the README the first page."""
    from mkdocs.structure.files import File

    root = Path(config["config_file_path"]).parent
    text = relinked((root / "README.md").read_text(encoding="utf-8"), root, "")
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Let links that leave `docs` lead to the repository."""
    if page.file.src_uri == "index.md":
        return markdown
    root = Path(config["config_file_path"]).parent
    return relinked(markdown, root, posixpath.join("docs", posixpath.dirname(page.file.src_uri)))


def relinked(text: str, root: Path, folder: str) -> str:
    """Return a page of `folder`, a path in the repository, with links as the site has them. Code is left alone."""

    def replace(found: re.Match[str]) -> str:
        before, link, after = found.groups()
        if re.match(r"\w+:", link):
            return found[0]
        target = posixpath.normpath(posixpath.join(folder, link))
        if target == "README.md":
            return f"{before}{posixpath.relpath('index.md', folder.removeprefix('docs').strip('/') or '.')}{after}"
        if target.startswith("docs/") and (root / target).is_file() and target.endswith(".md"):
            return found[0] if folder else f"{before}{target.removeprefix('docs/')}{after}"
        return f"{before}{REPOSITORY}{target}{after}"

    return "".join(part if part.lstrip().startswith("```") else _LINK.sub(replace, part) for part in _FENCE.split(text))
