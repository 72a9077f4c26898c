"""Reads bytecode: which globals, module attributes and imports a function uses, and whether it looks outside.

A function that reads the clock, random numbers, files or the environment while it is traced gives another
graph each time; it must never be restored from a key that cannot see those. What only runs while objects are
constructed is exempt: its effect is in the objects, and those are hashed.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

# Methods that have run by the time a key is made, or that never run inside a step.
CONSTRUCTION = frozenset(
    {
        "__init__",
        "__new__",
        "__init_subclass__",
        "__repr__",
        "__str__",
        "build",
        "build_from_config",
        "get_build_config",
        "get_config",
        "from_config",
        "compile",
        "compile_from_config",
        "get_compile_config",
        "fit",
        "evaluate",
        "predict",
        "summary",
        "save",
        "save_weights",
        "save_own_variables",
        "load_own_variables",
        "save_assets",
        "load_assets",
    }
)

IMPURE_MODULES = frozenset(
    {
        "random",
        "time",
        "datetime",
        "os",
        "posix",
        "sys",
        "secrets",
        "uuid",
        "socket",
        "subprocess",
        "io",
        "tempfile",
        "glob",
        "shutil",
        "pathlib",
        "platform",
        "inspect",
        "gc",
        "importlib",
        "urllib",
        "http",
        "requests",
        "sqlite3",
        "getpass",
        "select",
        "multiprocessing",
        "ctypes",
        "posixpath",
        "genericpath",
    }
)
IMPURE_BUILTINS = frozenset(
    {
        "open",
        "input",
        "id",
        "hash",
        "eval",
        "exec",
        "compile",
        "globals",
        "locals",
        "__import__",
        "breakpoint",
    }
)
# Functions of TensorFlow, Keras and numpy that look outside, or at values of variables, at once and not in the graph.
IMPURE_ATTRIBUTES = frozenset(
    {
        "gfile",
        "get_file",
        "load_npz",
        "load",
        "loadtxt",
        "genfromtxt",
        "fromfile",
        "memmap",
        "load_img",
        "load_model",
        "load_variable",
        "init_scope",
        "eager_mode",
        "get_uid",
        "get_global_attribute",
    }
)
# Attributes through which code can see the automatic names that a key leaves out.
NAME_READERS = frozenset(
    {
        "name",
        "names",
        "path",
        "_name",
        "_path",
        "get_layer",
        "output_names",
        "input_names",
        "__dict__",
        "vars",
    }
    | {"metrics_names", "__getattribute__", "get_config", "repr", "str"}
)


@dataclass(frozen=True, slots=True)
class Uses:
    """What one code object, nested ones included, reads from outside itself.

    `chains` are dotted reads that start at a global or a closure: `("np", "pi")`. `imports` are `(module,
    level)`. `names` are all attribute and method names.
    """

    chains: tuple[tuple[str, ...], ...]
    imports: tuple[tuple[str, int], ...]
    names: frozenset[str] = field(default_factory=frozenset)


@lru_cache(maxsize=16384)
def uses_of(code: types.CodeType) -> Uses:
    """Return what `code` reads from outside itself."""
    chains: dict[tuple[str, ...], None] = {}
    imports: dict[tuple[str, int], None] = {}
    names: set[str] = set()
    for each in _nested(code):
        names.update(each.co_names)
        _scan(each, chains, imports)
    return Uses(tuple(chains), tuple(imports), frozenset(names))


def _scan(code: types.CodeType, chains: dict[tuple[str, ...], None], imports: dict[tuple[str, int], None]) -> None:
    chain: tuple[str, ...] = ()
    constants: list[object] = []
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in ("CACHE", "EXTENDED_ARG", "PRECALL", "PUSH_NULL"):
            continue
        if name in ("LOAD_ATTR", "LOAD_METHOD") and chain:
            chain = (*chain, instruction.argval)
            continue
        if chain:
            chains[chain] = None
            chain = ()
        if name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"):
            chain = (instruction.argval,)
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            constants.append(instruction.argval)
        elif name == "IMPORT_NAME":
            level = next((c for c in constants[-2:] if isinstance(c, int)), 0)
            imports[(instruction.argval, level)] = None
    if chain:
        chains[chain] = None


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)
