"""Changes to the text of a program: what it loads, how long it trains, and where it ends."""

from __future__ import annotations

import re
from dataclasses import dataclass


class OutdatedEditError(Exception):
    """A pattern of the table is not in the program any more."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace every match of a pattern, of which there must be one; `^` and `$` match at each line."""

    pattern: str
    by: str


@dataclass(frozen=True, slots=True)
class Cut:
    """End the program before the line in which a pattern is first found."""

    pattern: str


Edit = Replace | Cut

# For all programs; they need not match.
_GENERAL = (
    Replace(r'(\["KERAS_BACKEND"\] *= *)"\w+"', r'\1"tensorflow"'),
    Replace(
        r"\b(?:tf\.)?(?:keras\.)?(?:datasets\.)?(mnist|fashion_mnist|cifar100?|imdb|boston_housing)\.load_data\(",
        r"synthetic.\1(",
    ),
    Replace(r"((?<![\w.)])[A-Za-z_][\w.]*)\.fit\((?!\.\.\.)", r"recording.fit(\1, "),
    Replace(r"((?<![\w.)])[A-Za-z_][\w.]*)\.train_on_batch\(", r"recording.train_on_batch(\1, "),
    Replace(r"\b(?:tf\.)?(?:keras\.)?utils\.plot_model\(", "recording.nothing("),
    Replace(r"^[!%].*$", ""),
    Replace(r"\breshape\((\(?)[1-6]0000,", r"reshape(\1-1,"),
    Replace(r"\[(:?)-[15]0000(:?)\]", r"[\1-64\2]"),
    Replace(r"^from IPython\.display import .*$", "display = Image = recording.nothing"),
)


def edited(source: str, edits: tuple[Edit, ...], *, determinism: bool, fewer: bool = False) -> str:
    """Return a program that trains on little data, or on still `fewer`, keeps its results, and needs no network."""
    for edit in edits:
        found = re.search(edit.pattern, source, re.MULTILINE)
        if found is None:
            raise OutdatedEditError(f"{edit.pattern!r} is not in the program")
        if isinstance(edit, Replace):
            source = re.sub(edit.pattern, edit.by, source, flags=re.MULTILINE)
        else:
            source = _until(source, found.start())
    for general in _GENERAL:
        source = re.sub(general.pattern, general.by, source, flags=re.MULTILINE)
    begin = f"import recording, synthetic\nrecording.begin(determinism={determinism})\n"
    if fewer:
        begin += "synthetic.TRAIN, synthetic.TEST = 96, 32\n"
    return f"{begin}{source}\nrecording.finish(globals())\n"


def _until(source: str, position: int) -> str:
    """Return what precedes the line at a position, without a text that would be left open."""
    kept = source[: source.rfind("\n", 0, position) + 1]
    return kept[: kept.rindex('"""')] if kept.count('"""') % 2 else kept
