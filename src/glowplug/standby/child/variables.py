"""Which environment variables a program's own code sets, as far as its text tells. Runs in the child.

The text is that of the program and of every module beside it that it imports, in turn. Reading variables is always
fine. A variable that is set by its name is reported with the values it is given; whatever else is done with the
environment is reported as unclear, since it may set anything.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_MENTIONS = re.compile(rb"environ|putenv|unsetenv|setenv|dotenv")
_IMPORTS = re.compile(
    rb"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+([\w \t,(*]+)|import[ \t]+([\w. \t,]+))"
    rb"|import_module\([ \t]*['\"]([.\w]+)['\"]",
    re.MULTILINE,
)
_MOST_FILES, _MOST_BYTES = 300, 4 << 20
_READS = frozenset({"get", "copy", "items", "keys", "values", "__contains__", "__getitem__", "encodekey"})
_NAMED = frozenset({"setdefault", "pop", "__setitem__", "__delitem__"})
_CALLS = frozenset({"putenv", "unsetenv", "setenv"})
_HARMLESS = frozenset({"dict", "list", "sorted", "set", "len", "str", "repr", "print", "pprint", "deepcopy", "dumps"})
_READING = (ast.Compare, ast.For, ast.comprehension, ast.Dict, ast.Starred, ast.FormattedValue, ast.BinOp)


class Setting(NamedTuple):
    """One place where a variable is set: to a value, or (None) to what is only known when it happens."""

    name: str
    value: str | None


class UnclearError(Exception):
    """The environment is changed in a way that the text does not tell."""


def settings(source: bytes, folder: str) -> set[Setting]:
    """Return what this program and the modules beside it set; raise `UnclearError` if that cannot be told.

    `folder` is where the program's own imports are looked for first.
    """
    found: set[Setting] = set()
    for path, text in _texts(source, folder):
        if _MENTIONS.search(text):
            try:
                found |= _settings_in(text)
            except UnclearError as error:
                raise UnclearError(f"{path}: {error}" if path else str(error)) from None
    return found


def _texts(source: bytes, folder: str) -> Iterator[tuple[str, bytes]]:
    pending, seen = [("", source)], {""}
    while pending:
        path, text = pending.pop()
        yield path, text
        for candidate in _beside(text, folder, os.path.dirname(path) or folder):
            if candidate not in seen and os.path.isfile(candidate):
                seen.add(candidate)
                if len(seen) > _MOST_FILES:
                    raise UnclearError("it has too many modules to look at")
                with open(candidate, "rb") as stream:
                    pending.append((candidate, stream.read(_MOST_BYTES)))


def _beside(text: bytes, folder: str, own: str) -> Iterator[str]:
    """Return the files in which the modules that a text imports would be, if they are the program's own."""
    for match in _IMPORTS.finditer(text):
        origin, names, plain, called = (part.decode() if part else "" for part in match.groups())
        package = origin if origin.endswith(".") else f"{origin}."
        modules = [origin, *(f"{package}{name}" for name in re.findall(r"\w+", names))] if origin else []
        modules += [called] if called else [part.split()[0] for part in plain.split(",") if part.split()]
        for module in modules:
            dots = len(module) - len(module.lstrip("."))
            base = folder
            if dots:
                base = own
                for _ in range(dots - 1):
                    base = os.path.dirname(base)
            at = base
            for part in filter(None, module.split(".")):
                at = os.path.join(at, part)
                yield f"{at}.py"
                yield os.path.join(at, "__init__.py")


def _settings_in(text: bytes) -> set[Setting]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return set()  # it cannot run either
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    found: set[Setting] = set()
    for node in ast.walk(tree):
        name = _name(node)
        if name in ("environ", "environb"):
            found |= _use(node, parents)
        elif name in _CALLS and isinstance(parents.get(node), ast.Call):
            found.add(_by_name(parents[node]))
        elif name in ("load_dotenv", "dotenv"):
            raise UnclearError("it reads variables from a file")
    return found


def _use(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> set[Setting]:
    """Return what one mention of the environment sets."""
    parent = parents[node]
    above = parents.get(parent)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        if isinstance(parent.ctx, ast.Load):
            return set()
        value = above.value if isinstance(above, ast.Assign | ast.AnnAssign) else None
        return {Setting(_text(parent.slice), _constant(value))}
    if isinstance(parent, ast.Attribute):
        if parent.attr in _READS:
            return set()
        if isinstance(above, ast.Call) and parent.attr in _NAMED:
            return {_by_name(above)}
        if isinstance(above, ast.Call) and parent.attr == "update":
            return _updated(above)
    if isinstance(parent, _READING):
        return set()
    if isinstance(parent, ast.keyword) and parent.arg in ("env", None):
        return set()
    if isinstance(parent, ast.Call) and node in parent.args and _name(parent.func) in _HARMLESS:
        return set()
    raise UnclearError("what it does with os.environ cannot be told")


def _by_name(called: Any) -> Setting:
    arguments = called.args
    if not arguments:
        raise UnclearError("what it does with os.environ cannot be told")
    return Setting(_text(arguments[0]), _constant(arguments[1]) if len(arguments) > 1 else None)


def _updated(called: Any) -> set[Setting]:
    found = set()
    for argument in called.args:
        if not isinstance(argument, ast.Dict) or None in argument.keys:
            raise UnclearError("what it does with os.environ cannot be told")
        found |= {
            Setting(_text(key), _constant(value)) for key, value in zip(argument.keys, argument.values, strict=True)
        }
    for keyword in called.keywords:
        if keyword.arg is None:
            raise UnclearError("what it does with os.environ cannot be told")
        found.add(Setting(keyword.arg, _constant(keyword.value)))
    return found


def _name(node: Any) -> str:
    """Return the last part of a name, for what is one."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.alias):
        return node.name if node.name in ("dotenv", "load_dotenv") else ""
    return ""


def _text(node: Any) -> str:
    value = _constant(node)
    if value is None:
        raise UnclearError("it sets variables whose names cannot be told")
    return value


def _constant(node: Any) -> str | None:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str | bytes):
        return None
    return node.value if isinstance(node.value, str) else os.fsdecode(node.value)
