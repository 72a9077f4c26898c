"""Reads bytecode: which globals, module attributes and imports a function uses, and what its key must then hold.

What a function does with them is judged elsewhere: `admission` says what may be used, and a witness says whether the
function ran at all.
"""

from __future__ import annotations

import dis
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from .constants import (
    IN_BETWEEN,
    calls_with_one,
    given_constants,
    names_in_a_format,
    pieces_of_names,
    texts_in,
    without_keywords,
)
from .names import is_judged
from .texts import weighs_texts, writes_texts

IMPORTED = "import "  # begins the first name of a chain that starts at a module imported by the function itself

# Methods that have usually run by the time a key is made. They do not make a key hold automatic names; if one of them
# runs in a trace after all and reads a name, the witness refuses.
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

# Attributes through which code can see the automatic names that a key leaves out.
_NAME_READERS = frozenset(
    {
        "name",
        "names",
        "path",
        "_name",
        "_path",
        "get_layer",
        "output_names",
        "input_names",
        "metrics_names",
        "get_config",
        "__dict__",
        "__getstate__",
        "__getattribute__",
        "getattr",
        "attrgetter",
        "repr",
        "str",
        "format",
        "format_map",
        "pformat",
        "substitute",
        "safe_substitute",
    }
)
_EVERY_ATTRIBUTE = frozenset({"getattr", "attrgetter", "__dict__", "__getattribute__", "__getstate__"})
# Attributes of functions, classes and modules that a key leaves out.
_NOT_IN_KEYS = frozenset(
    [
        "__doc__",
        "__annotations__",
        "__code__",
        "__closure__",
        "__globals__",
        "__module__",
        "__file__",
        "__firstlineno__",
        "__loader__",
        "__spec__",
        "__abstractmethods__",
        "__annotate_func__",
        "__annotate__",
        "__annotations_cache__",
        "__static_attributes__",
        "__type_params__",
        "__getstate__",
        "__dir__",
        "__traceback__",
        "__weakref__",
        "__subclasses__",
        "__builtins__",
        "gi_frame",
        "gi_code",
        "f_back",
        "f_builtins",
        "f_code",
        "f_globals",
        "f_lasti",
        "f_lineno",
        "f_locals",
        "ag_code",
        "ag_frame",
        "cr_code",
        "cr_frame",
        "tb_frame",
        "tb_lasti",
        "tb_lineno",
        "co_firstlineno",
        "co_filename",
        "__reduce__",
        "__reduce_ex__",
        "__sizeof__",
        "__hash__",
        "__cached__",
        "__path__",
        "__bases__",
        "annotation",
        "return_annotation",
        # what TensorFlow's variables keep: names, numbers and first values
        "_unique_id",
        "_handle_name",
        "_shared_name",
        "_graph_key",
        "_initial_value",
    ]
)
_HASH_ORDER = frozenset({"BUILD_SET", "SET_ADD", "SET_UPDATE"})
_OF_SETS = frozenset({"set", "frozenset", "union", "intersection", "difference", "symmetric_difference"})
_JOINS_VIEWS = frozenset({"&", "|", "^", "&=", "|=", "^="})


_MAKERS_OF_NAMES = frozenset({"attrgetter", "methodcaller", "__getattr__", "__getattribute__", "vformat", "get_field"})
_IDENTITY = frozenset({"is_", "is_not"})
_ALONE = frozenset({type(None), bool, type(...), type(NotImplemented)})  # constants that are one object
_GETS_BY_NAME = frozenset({"getattr", "hasattr"})
_FORMATS = frozenset({"format", "format_map"})  # of a text, which reads attributes of what it is given
_TELLS_TYPES = frozenset(
    [
        "get_args",
        "get_origin",
        "get_original_bases",
        "__args__",
        "__bound__",
        "__constraints__",
        "__default__",
        "__forward_value__",
        "__metadata__",
        "__orig_bases__",
        "__origin__",
        "__parameters__",
        "__supertype__",
    ]
)
_SIGNATURES = frozenset({"signature", "Signature"})
_CLOCK_OF_NUMPY = re.compile(r"[<>=|]?M8\b.*|datetime64.*|now|today", re.IGNORECASE)  # it reads "now" as a time
_LOADS_BY_NAME = frozenset(
    [
        "LOAD_GLOBAL",
        "LOAD_NAME",
        "LOAD_DEREF",
        "LOAD_CLASSDEREF",
        "LOAD_FROM_DICT_OR_DEREF",
        "LOAD_FROM_DICT_OR_GLOBALS",
    ]
)
_LOADS_OF_LOCALS = ("LOAD_FAST", "STORE_FAST_LOAD_FAST")
_SIMPLE_LOADS = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CONST"})


@dataclass(frozen=True, slots=True)
class Uses:
    """What one code object, nested ones included, reads from outside itself.

    `chains` are dotted reads that start at a global, a closure or an import: `("np", "pi")`. `imports` are `(module,
    level)`. `names` are all attribute and method names; `texts` are the strings among the constants.
    """

    chains: tuple[tuple[str, ...], ...]
    imports: tuple[tuple[str, int], ...]
    names: frozenset[str]
    judged: frozenset[str]  # names that may be read only if a key holds them, but for those in chains
    stores: frozenset[str]  # attributes that it sets
    texts: frozenset[str]
    pieces: frozenset[str]  # of `texts`, what a name that a key leaves out may be put together from
    makes_sets: bool  # or goes through one: its order can be seen
    writes_texts: bool  # of objects, which may show their names
    makes_up_names: bool  # of attributes that it reads
    codecs: frozenset[str]  # constants given to `encode` and `decode`; `?` for anything else
    writes_globals: frozenset[str]
    asks_identity: bool  # of what it compares, other than None and the like
    tells_texts: bool  # of any object, which may have an address in its text
    weighs_texts: bool  # makes numbers of texts
    keeps_memos: bool  # of copies, which are tables by address

    @property
    def reads_names(self) -> bool:
        """Whether automatic names may be seen."""
        return self.writes_texts or bool(self.names & _NAME_READERS)

    @property
    def reads_initializers(self) -> bool:
        """Whether an initializer may be called."""
        every = not self.names.isdisjoint(_EVERY_ATTRIBUTE)
        return every or any("initializer" in name for name in self.names | self.texts)

    @property
    def reads_types(self) -> bool:
        """Whether what a type was made of may be seen: bases with arguments, aliases, variables."""
        return not _TELLS_TYPES.isdisjoint(self.names)

    @property
    def reads_signatures(self) -> bool:
        """Whether annotations of functions may be seen."""
        return not _SIGNATURES.isdisjoint(self.names)

    @property
    def reads_clock(self) -> bool:
        """Whether numpy may be asked for the time."""
        return "datetime64" in self.names or any(map(_CLOCK_OF_NUMPY.fullmatch, self.texts))

    def hidden(self, private: frozenset[str]) -> str | None:
        """Return an attribute that is read and that no key holds."""
        texts = {text for text in self.texts if text in private or text.startswith("__")}
        found = sorted((self.names | texts) & (_NOT_IN_KEYS | private))
        return found[0] if found else None


def is_left_out(name: str, private: frozenset[str]) -> bool:
    """Whether what stands under this name on a function, class or object is in no key."""
    return name in _NOT_IN_KEYS or name in private


@lru_cache(maxsize=16384)
def uses_of(code: types.CodeType) -> Uses:
    """Return what `code` reads from outside itself."""
    scan = _Scan()
    for each in nested(code):
        scan.read(each)
    return Uses(
        tuple(scan.chains),
        tuple(scan.imports),
        frozenset(scan.names),
        frozenset(filter(is_judged, scan.read_names)),
        frozenset(scan.stores),
        frozenset(scan.texts),
        frozenset(scan.pieces),
        scan.makes_sets or not _OF_SETS.isdisjoint(scan.names),
        scan.writes_texts,
        scan.makes_up_names,
        frozenset(scan.codecs),
        frozenset(scan.writes_globals),
        scan.asks_identity or not _IDENTITY.isdisjoint(scan.names),
        scan.tells_texts,
        scan.weighs_texts or bool(scan.codecs - {"?"}),  # bytes are numbers
        scan.keeps_memos,
    )


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object and all that it defines."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


def _constant_read(after: list[dis.Instruction]) -> str | None:
    """Return the constant that the instructions which follow the loading of `getattr` call it with: in doubt, None."""
    length = next((number for number, each in enumerate(after) if each.opname.startswith("CALL")), 0)
    arguments = after[:length]
    if not arguments or after[length].opname != "CALL" or after[length].argval not in (2, 3):
        return None
    if after[length].argval == 3 and arguments.pop().opname not in _SIMPLE_LOADS:
        return None
    if len(arguments) < 2 or arguments[-1].opname != "LOAD_CONST" or type(arguments[-1].argval) is not str:
        return None
    simple = arguments[0].opname in _SIMPLE_LOADS and all(each.opname == "LOAD_ATTR" for each in arguments[1:-1])
    return arguments[-1].argval if simple else None


class _Scan:
    def __init__(self) -> None:
        self.chains: dict[tuple[str, ...], None] = {}
        self.imports: dict[tuple[str, int], None] = {}
        self.names: set[str] = set()
        self.read_names: set[str] = set()
        self.stores: set[str] = set()
        self.texts: set[str] = set()
        self.pieces: set[str] = set()
        self.makes_sets = False
        self.writes_texts = False
        self.makes_up_names = False
        self.codecs: set[str] = set()
        self.writes_globals: set[str] = set()
        self.asks_identity = False
        self.tells_texts = False
        self.weighs_texts = False
        self.keeps_memos = False
        # What local variables may hold, as chains: which of them it is, is decided while it runs.
        self._imported: dict[str, list[tuple[str, ...]]] = {}

    def read(self, code: types.CodeType) -> None:
        self.names.update(code.co_names)
        constants = without_keywords(code)
        self.texts.update(texts_in(constants))
        self.pieces.update(pieces_of_names(code, constants))
        self.tells_texts = self.tells_texts or writes_texts(code)
        self.weighs_texts = self.weighs_texts or weighs_texts(code)
        self._find_imports(code)
        self._find_chains(code)
        self._find_sets_and_texts(code)
        self._find_made_up_names(code)

    def _find_imports(self, code: types.CodeType) -> None:
        constants: list[object] = [None]
        chain: tuple[str, ...] = ()  # of what was imported last and has no name yet
        listed = False
        for instruction in dis.get_instructions(code):
            name = instruction.opname
            if name in ("LOAD_CONST", "LOAD_SMALL_INT"):
                constants.append(instruction.argval)
            elif name == "IMPORT_NAME":
                level = next((c for c in constants[-2:] if isinstance(c, int)), 0)
                self.imports[(instruction.argval, level)] = None
                # Without a list of names, `import a.b` binds `a`.
                bound = instruction.argval if constants[-1] else instruction.argval.partition(".")[0]
                chain, listed = (f"{IMPORTED}{'.' * level}{bound}",), bool(constants[-1])
            elif name == "IMPORT_FROM" and chain:
                chain = (*(chain[:1] if listed else chain), instruction.argval)  # `import a.b.c as d` goes down
            elif name.startswith("STORE_") and chain:
                stored = instruction.argval[0] if isinstance(instruction.argval, tuple) else instruction.argval
                self._imported.setdefault(stored, []).append(chain)
                chain = chain[:1] if listed else ()
            elif name == "POP_TOP" and listed:
                chain = ()  # the last name of a list
            if name in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                self.writes_globals.add(instruction.argval)

    def _find_made_up_names(self, code: types.CodeType) -> None:
        """Find reads of attributes by anything but a constant, as in `getattr(a.b, "name", None)`, and codecs."""
        if not _MAKERS_OF_NAMES.isdisjoint(code.co_names):
            self.makes_up_names = True
        found = [each for each in dis.get_instructions(code) if each.opname not in IN_BETWEEN]
        for index, instruction in enumerate(found):
            if instruction.argval in ("encode", "decode"):
                self.codecs |= given_constants(found[index + 1 :])
            elif instruction.argval == "deepcopy" and instruction.opname.startswith("LOAD_"):
                self.keeps_memos = self.keeps_memos or not calls_with_one(code, instruction)
            elif instruction.argval in _GETS_BY_NAME:
                constant = _constant_read(found[index + 1 :])
                self.makes_up_names = self.makes_up_names or constant is None
                self.read_names |= {constant or ""}
            elif instruction.argval in _FORMATS:
                before = found[index - 1].argval if index and found[index - 1].opname == "LOAD_CONST" else None
                if isinstance(before, str):
                    self.names |= names_in_a_format(before)
                    self.read_names |= names_in_a_format(before)
                elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                    self.makes_up_names = True
            elif instruction.opname == "MATCH_CLASS":
                self._match_class(instruction.arg, found[index - 1].argval)

    def _match_class(self, positions: int | None, names: object) -> None:
        """A pattern reads attributes: by the names that it gives, and by those that the class gives for positions."""
        self.names |= set(texts_in((names,)))
        self.read_names |= set(texts_in((names,)))
        if positions:
            self.names.add("getattr")
            self.makes_up_names = True

    def _find_sets_and_texts(self, code: types.CodeType) -> None:
        views = not {"keys", "items"}.isdisjoint(code.co_names)
        constant_set = False
        for instruction in dis.get_instructions(code):
            name = instruction.opname
            if constant_set and name != "CONTAINS_OP":
                self.makes_sets = True  # it is gone through: only whether something is in it depends on no order
            constant_set = name == "LOAD_CONST" and isinstance(instruction.argval, frozenset)
            operation = instruction.argrepr if name == "BINARY_OP" else ""
            if name in _HASH_ORDER or (views and operation in _JOINS_VIEWS):
                self.makes_sets = True
            elif name.startswith("FORMAT_") or operation in ("%", "%="):
                self.writes_texts = True

    def _find_chains(self, code: types.CodeType) -> None:
        chains: list[tuple[str, ...]] = []  # of what was loaded last
        before: dis.Instruction | None = None
        for instruction in dis.get_instructions(code):
            name = instruction.opname
            if name in ("CACHE", "EXTENDED_ARG", "PRECALL", "PUSH_NULL"):
                continue
            if name == "IS_OP" and not _is_constant_alone(before):
                self.asks_identity = True
            before = instruction
            if name in ("LOAD_ATTR", "LOAD_METHOD") and chains:
                chains = [(*chain, instruction.argval) for chain in chains]
                continue
            self.chains.update(dict.fromkeys(chains))
            chains = []
            if name in ("LOAD_ATTR", "LOAD_METHOD") or name.startswith("LOAD_SUPER_"):
                self.read_names.add(instruction.argval)
            elif name == "STORE_ATTR":
                self.stores.add(instruction.argval)
            elif name in _LOADS_BY_NAME:
                chains = [(instruction.argval,), *self._imported.get(instruction.argval, ())]
            elif name.startswith(_LOADS_OF_LOCALS) and self._imported:
                given = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
                for loaded in given[1 if name.startswith("STORE_") else 0 :]:
                    if loaded in code.co_cellvars:
                        continue  # the cell, for a closure: what is in it is loaded by its own instruction
                    self.chains.update(dict.fromkeys(chains))
                    chains = list(self._imported.get(loaded, ()))
        self.chains.update(dict.fromkeys(chains))


def _is_constant_alone(loaded: dis.Instruction | None) -> bool:
    return loaded is not None and loaded.opname == "LOAD_CONST" and type(loaded.argval) in _ALONE
