"""A program to run: a script, a module, code, standard input or a command, checked before anything starts."""

from __future__ import annotations

import os

from .errors import UsageError

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the program's start 5 ms
if TYPE_CHECKING:
    from collections.abc import Sequence

SCRIPT, MODULE, CODE, STDIN, COMMAND = "script", "module", "code", "stdin", "command"
_SIGNS = {MODULE: ("-m",), CODE: ("-c",), COMMAND: ("--",)}


class Target:
    """A program. `name` is its path, the module's name, the source text, `-` or the command, by `kind`.

    Not a dataclass: importing `dataclasses` would cost more than all else that happens before the program takes over.
    """

    __slots__ = ("arguments", "kind", "name")

    def __init__(self, kind: str, name: str, arguments: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.name = name
        self.arguments = arguments

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self.words() == other.words() and self.kind == other.kind

    def __hash__(self) -> int:
        return hash((self.kind, self.words()))

    def words(self) -> tuple[str, ...]:
        """Return it as it is written on a command line."""
        return (*_SIGNS.get(self.kind, ()), self.name, *self.arguments)

    def command(self, interpreter: str) -> tuple[str, ...]:
        """Return the argument vector of a new process that runs it."""
        return self.words()[1:] if self.kind == COMMAND else (interpreter, *self.words())


def target_from_words(words: Sequence[str], *, verb: str = "run", commands: bool = False) -> Target:
    """Read `SCRIPT ARGS`, `-m MODULE ARGS`, `-c CODE ARGS`, `- ARGS` or, where allowed, `-- COMMAND ARGS`."""
    if not words:
        last = "a command after --" if commands else "- for standard input"
        raise UsageError(f"nothing to {verb}", remedy=f"name a script, -m MODULE, -c CODE, or {last}")
    first, *rest = words
    if first in ("-m", "-c"):
        if not rest:
            raise UsageError(f"{first} needs a value", remedy=f"write {first} VALUE after the options")
        return Target(MODULE if first == "-m" else CODE, rest[0], tuple(rest[1:]))
    if first == "-":
        return Target(STDIN, first, tuple(rest))
    if first == "--":
        return _command(rest, verb) if commands else target_from_words(rest, verb=verb)
    if first.startswith("-"):
        raise UsageError("no such option", seen=first, remedy=f"see glowplug {verb} --help")
    if not os.path.exists(first):  # noqa: PTH110 - pathlib would cost the program's start
        remedy = _suggestion(first, verb) if commands else "check the path; a module is run with -m"
        raise UsageError("the target does not exist", seen=first, remedy=remedy)
    return Target(SCRIPT, first, tuple(rest))


def _command(words: Sequence[str], verb: str) -> Target:
    import shutil

    if not words:
        raise UsageError("no command after --", remedy=f"write glowplug {verb} -- COMMAND ARGS")
    if shutil.which(words[0]) is None:
        raise UsageError("the command does not exist", seen=words[0], remedy="check the name and PATH")
    return Target(COMMAND, words[0], tuple(words[1:]))


def _suggestion(name: str, verb: str) -> str:
    import shutil

    if shutil.which(name):
        return f"for a command write: glowplug {verb} -- {name}"
    return "check the path; a module is run with -m"
