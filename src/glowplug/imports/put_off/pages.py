"""Puts parts of TensorFlow's API off until the program asks for them.

TensorFlow's API is a tree of page modules (`tensorflow._api.v2.lite`, ...) that do nothing but import names. While
TensorFlow is imported, two things stand in for what is put off: a placeholder for a whole page, and a token for a name
that a page takes from a module. When the import has ended they are taken out again of the pages that hold them, and
those pages get a `__getattr__` that imports the real thing when it is first asked for. So what a program gets is always
the real module, class or function, never a stand-in; a placeholder that somebody holds on to forwards to it.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from glowplug.imports.window import Window

from .settings import Settings

_API = "tensorflow._api.v2"
_TOP = "tensorflow"
# What Python asks modules for by itself. TensorFlow has names of its own with such underscores (`__internal__`).
_PROTOCOL = frozenset(
    ("__all__", "__cached__", "__dir__", "__file__", "__getattr__", "__loader__", "__path__", "__spec__", "__wrapped__")
)
OFFERED, _FETCH = "__glowplug_offered__", "__glowplug_fetch__"


class Token(NamedTuple):
    """Stands for a name of a module, or for a module where `name` is empty."""

    module: str
    name: str = ""


class Placeholder(ModuleType):
    """Stands for a page while TensorFlow is being imported."""

    def __getattr__(self, name: str) -> Any:
        if name in _PROTOCOL:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(vars(self)[_FETCH](Token(self.__name__)), name)

    def __dir__(self) -> list[str]:
        return dir(vars(self)[_FETCH](Token(self.__name__)))


class Source(ModuleType):
    """Stands for a module during one import statement of a page: each of its names is a token."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        _forget_sources()
        return Token(self.__name__, name)


class PendingPages:
    """Knows what is put off, and fetches it. Also the finder of placeholders and sources."""

    def __init__(
        self, pages: frozenset[str], sources: frozenset[str], instead: Mapping[str, tuple[str, ...]], window: Window
    ) -> None:
        self._pages = set(pages)
        self._sources = sources
        self._instead = instead
        self._fetching = threading.local()  # `depth`: another thread sees the pages as they are meanwhile
        self._window = window
        self._borrowers: set[str] = set()
        self._filters: list[Any] = []  # of warnings, when the import that puts off has ended
        self.count = 0
        self.fetched: set[str] = set()

    def put_off(self) -> Callable[[], None]:
        """Begin to put off; the returned function ends it and offers on demand what was put off."""
        sys.meta_path.insert(0, self)

        def end() -> None:
            sys.meta_path.remove(self)
            if not self._filters:
                self._filters = list(warnings.filters)
            self._offer_all()

        return end

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a stand-in, or None for every other module, and for all while something is fetched."""
        if self._is_fetching():
            return None
        if name in self._pages:
            return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        if name in self._sources:
            page = _importing_page()
            if page:
                self._borrowers.add(page)
                return ModuleSpec(name, self, is_package=any(one.startswith(f"{name}.") for one in self._sources))  # type: ignore[arg-type]
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a stand-in."""
        if spec.name not in self._pages:
            return Source(spec.name)
        placeholder = Placeholder(spec.name)
        vars(placeholder)[_FETCH] = self.fetch
        return placeholder

    def exec_module(self, module: ModuleType) -> None:
        """Load nothing but what is needed at this moment."""
        for name in self._instead.get(module.__name__, ()):
            import_module(name)

    def fetch(self, token: Token) -> Any:
        """Import what was put off, and show it on the pages where it belongs."""
        self.fetched.add(token.module)
        self._pages.discard(token.module)
        if isinstance(sys.modules.get(token.module), Placeholder):
            del sys.modules[token.module]
        found = self.import_whole(token.module)
        if token.name:
            return getattr(found, token.name)
        for owner, child in _owners(token.module):
            if isinstance(vars(owner).get(child), Placeholder | None):
                setattr(owner, child, found)
        return found

    def import_whole(self, name: str) -> Any:
        """Import a module with everything it imports in turn: what was put off once is not put off in pieces."""
        self._fetching.depth = getattr(self._fetching, "depth", 0) + 1
        self._window.enter()
        settings = Settings()
        try:
            return import_module(name)
        finally:
            settings.restore(self._filters)
            self._window.leave()
            self._fetching.depth -= 1

    def _is_fetching(self) -> bool:
        """Whether this thread is importing what was put off."""
        return bool(getattr(self._fetching, "depth", 0))

    def _offer_all(self) -> None:
        for name in self._pages:
            held = sys.modules.get(name)
            if isinstance(held, Placeholder):
                del sys.modules[name]
                for owner, child in _owners(name):
                    if vars(owner).get(child) is held:
                        self._offer(owner, child, Token(name))
        for borrower in self._borrowers:
            page = sys.modules[borrower]
            for child, value in list(vars(page).items()):
                if type(value) is Token:
                    self._offer(page, child, value)
        self._borrowers.clear()

    def _answer(self, owner: ModuleType, child: str, token: Token) -> Any:
        """Return what a page is asked for, and keep it there.

        TensorFlow's own modules write `import tensorflow.distribute.x as y`, which means the package of that name and
        not the page: while something is fetched it is they who ask, and so it is where one of them is being imported.
        """
        package = sys.modules.get(f"{owner.__name__}.{child}")
        if package is not None and (self._is_fetching() or _is_body_of_library(sys._getframe(2))):
            return package
        value = vars(owner)[child] = self.fetch(token)
        vars(owner)[OFFERED].pop(child, None)
        return value

    def _offer(self, owner: ModuleType, child: str, token: Token) -> None:
        """Take a stand-in out of a module, and have the module fetch the real thing when it is asked for it."""
        names = vars(owner)
        del names[child]
        self.count += 1
        offered: dict[str, Token] | None = names.get(OFFERED)
        if offered is None:
            offered = names[OFFERED] = {}
            _add_hooks(owner, offered, self._answer)
        offered[child] = token


def _add_hooks(owner: ModuleType, offered: dict[str, Token], answer: Callable[[ModuleType, str, Token], Any]) -> None:
    names = vars(owner)
    before, listing = names.get("__getattr__"), names.get("__dir__")
    ours = {OFFERED} | ({"__getattr__", "__dir__"} - names.keys())

    def __getattr__(name: str) -> Any:  # noqa: N807 - the interpreter's name for it
        token = offered.get(name)
        if token is not None:
            return answer(owner, name, token)
        if name in names:  # another thread was first
            return names[name]
        if before is not None:
            return before(name)
        raise AttributeError(f"module {owner.__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:  # noqa: N807 - as above
        return sorted({*(listing() if listing is not None else names), *offered} - ours)

    names["__getattr__"], names["__dir__"] = __getattr__, __dir__


def _owners(name: str) -> list[tuple[ModuleType, str]]:
    """Return the modules that show a page, with the name they show it under.

    `tensorflow` shows the pages of the first rank itself, and the folder of the pages is on its path: `tensorflow.x`
    can be a second module of the same file as `tensorflow._api.v2.x`.
    """
    parent, _, child = name.rpartition(".")
    return [(sys.modules[one], child) for one in (parent, parent.replace(_API, _TOP)) if one in sys.modules]


def _forget_sources() -> None:
    for name, module in list(sys.modules.items()):
        if type(module) is Source:
            del sys.modules[name]
            parent, _, child = name.rpartition(".")
            vars(sys.modules.get(parent, module)).pop(child, None)


def _is_body_of_library(frame: FrameType) -> bool:
    """Say whether a frame is the body of a module of TensorFlow's that is no page."""
    name = str(frame.f_globals.get("__name__", ""))
    return frame.f_code.co_name == "<module>" and name.startswith(f"{_TOP}.") and not name.startswith(_API)


def _importing_page() -> str:
    """Return the name of the page whose import statement is under way, empty where it is another module's."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    name = frame.f_globals.get("__name__", "")
    return name if name == _TOP or name.startswith(_API) else ""
