"""Runs Python of the documentation as it is printed: `python -m tests.docs.snippets FOLDER NAME…`

TensorFlow is imported once for all of them. The blocks of a page run in turn, with the names of those before.
Each gives one line of JSON: its name, and the error where there was one. The multiprocessing of snippets imports this
module again, so it imports nothing heavy.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import shutil
import sys
import traceback
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from tests.docs.blocks import Block, python_blocks

MAKE_MODEL = ("README", "pack")  # the pages that pack the bundle of which others take it that it is there


def run(block: Block, names: dict[str, object]) -> str:
    """Run a block; returns what it printed."""
    code = compile(block.text, block.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        pending = eval(code, names)  # a coroutine where the block awaits
        if inspect.iscoroutine(pending):
            asyncio.run(pending)
    return printed.getvalue()


def run_page(blocks: Sequence[Block], given: Path, folder: Path) -> None:
    """Run the blocks of a page or of a rule in a folder of their own, and report each."""
    from tests.docs.given import names_for

    shutil.copytree(given, folder)
    os.chdir(folder)
    topic = Path(blocks[0].page).stem
    if topic in MAKE_MODEL:
        shutil.rmtree("model.glow")
    with names_for(topic) as given_names:
        names = dict(given_names)
        for block in blocks:
            if topic == "README":  # whose sections are programs of their own
                names = dict(given_names)
            try:
                outcome = {"name": block.name, "error": None, "printed": run(block, names)}
            except BaseException:  # the process boundary: the test shows it
                outcome = {"name": block.name, "error": traceback.format_exc(limit=-6), "printed": ""}
            print(json.dumps(outcome), flush=True)


def main() -> None:
    root = Path(sys.argv[1])
    chosen = [block for block in python_blocks() if block.name in sys.argv[2:]]
    given = root / "given"
    if not given.exists():
        from tests.docs.given import make_files

        given.mkdir()
        with contextlib.redirect_stdout(sys.stderr):
            make_files(given)
    sys.path.insert(0, "")
    for number, (_, blocks) in enumerate(groupby(chosen, lambda block: block.page)):
        run_page(list(blocks), given, root / str(number))


if __name__ == "__main__":
    main()
