"""Which parts of `glowplug run` are on, as a value that fits into an environment variable."""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the program's start 5 ms
if TYPE_CHECKING:
    from typing import Any

_LETTERS = {"i": "imports", "p": "prefetch", "t": "trace_cache", "c": "children"}
# Where `--json-file` has the document written. The program never sees it: it is taken out before the program starts.
EXPLAIN_FILE = "GLOWPLUG_EXPLAIN_FILE"
_EXPLAIN = {"x": "text", "j": "json"}


class Options:
    """Which parts are on.

    `explain` is empty, `text` or `json`: how to say at exit what was applied. With `children`, Python processes that
    the program starts have the same parts.
    """

    __slots__ = ("children", "explain", "imports", "prefetch", "trace_cache")

    def __init__(
        self,
        *,
        imports: bool = True,
        prefetch: bool = True,
        trace_cache: bool = True,
        explain: str = "",
        children: bool = True,
    ) -> None:
        self.imports = imports
        self.prefetch = prefetch
        self.trace_cache = trace_cache
        self.explain = explain
        self.children = children

    def letters(self) -> str:
        """Return the options as a few letters."""
        chosen = [letter for letter, name in _LETTERS.items() if getattr(self, name)]
        return "".join([*chosen, *(letter for letter, how in _EXPLAIN.items() if how == self.explain)])

    def values(self) -> dict[str, Any]:
        """Return the arguments that make these options."""
        return {name: getattr(self, name) for name in self.__slots__}


def from_letters(letters: str) -> Options:
    """Return the options that gave these letters."""
    parts: dict[str, Any] = {name: letter in letters for letter, name in _LETTERS.items()}
    return Options(**parts, explain=next((how for letter, how in _EXPLAIN.items() if letter in letters), ""))
