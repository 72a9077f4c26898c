"""Hides what a standby imported ahead of time until the program imports it itself.

A fresh process has no `tensorflow` in `sys.modules` until somebody imports it, and libraries look there to find out
what is in use. It is also the moment at which variables such as KERAS_BACKEND are read, and programs set them just
before. So the finished modules are taken out of `sys.modules` before the fork, and in the child a finder puts them back
when they are first asked for: all that came with a root of the preload list, or one package by itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Hook = Callable[[], None]


class _Finished:
    """The loader of a module that has been executed before the fork."""

    def __init__(self, module: ModuleType, hooks: list[Hook]) -> None:
        self._module = module
        self._hooks = hooks
        self._spec, self._loader = module.__spec__, module.__loader__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__, module.__loader__ = self._spec, self._loader
        if self._spec is not None:
            # importlib reads it on the way out; a spec that says "initializing" would slow every later import
            self._spec.__dict__.pop("_initializing", None)
        while self._hooks:
            self._hooks.pop()()


class WithheldModules:
    """The finder that hands them out.

    `roots` maps each entry of the preload list to the modules that were there once it was imported.
    """

    def __init__(self, roots: dict[str, list[str]], modules: dict[str, ModuleType]) -> None:
        self._roots = roots
        self._modules = modules
        self.packages = frozenset(name.partition(".")[0] for name in modules)
        self._released: dict[str, ModuleType] = {}
        self._before: dict[str, list[Hook]] = {}
        self._after: dict[str, list[Hook]] = {}
        self._due: list[Hook] = []
        self.variables: dict[str, str] = {}

    def before_release(self, package: str, hook: Hook) -> None:
        """Run `hook` when `package` is asked for and nothing is visible yet; it may raise."""
        self._before.setdefault(package, []).append(hook)

    def after_release(self, package: str, hook: Hook) -> None:
        """Run `hook` once `package` is back."""
        self._after.setdefault(package, []).append(hook)

    def sets(self, package: str, variables: dict[str, str]) -> None:
        """Have the program's environment changed, once `package` is back, as its import changed the standby's."""
        self.variables |= variables
        self.after_release(package, lambda: os.environ.update(variables))

    def holds(self, name: str) -> bool:
        """Tell whether `name` is finished and not yet asked for."""
        return name in self._modules

    def folder(self, package: str) -> str | None:
        """Return where a withheld package is, without handing it out."""
        file = getattr(self._modules.get(package), "__file__", None)
        return os.path.dirname(file) if file else None

    @property
    def roots(self) -> frozenset[str]:
        """The preload list."""
        return frozenset(self._roots)

    def forget(self, package: str) -> None:
        """Give a package up, with what was to happen once it is back: it will be imported from its files."""
        for name in [name for name in self._modules if name.partition(".")[0] == package]:
            del self._modules[name]
        self._before.pop(package, None)
        self._after.pop(package, None)

    def peek(self, name: str) -> ModuleType | None:
        """Return a withheld module without handing it out."""
        return self._modules.get(name)

    def modules(self) -> list[ModuleType]:
        """Return all that are withheld."""
        return list(self._modules.values())

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Put back what `name` belongs to. Called by the import system."""
        if name in self._modules:
            self._release(name)
        # Other finders may ask again before the import has ended; `importlib.reload` names its target and shall go on.
        module = self._released.get(name) if target is None else None
        if module is None:
            return None
        origin = getattr(module.__spec__, "origin", None)
        loader: Any = _Finished(module, self._due)
        spec = ModuleSpec(name, loader, origin=origin, is_package=hasattr(module, "__path__"))
        if hasattr(module, "__path__"):
            spec.submodule_search_locations = list(module.__path__)
        return spec

    def _release(self, asked: str) -> None:
        package = asked.partition(".")[0]
        names = self._roots.get(package)
        if names is None:
            names = [name for name in self._modules if name.partition(".")[0] == package]
        found = [name for name in names if name in self._modules]
        packages = {package, *(name for name in found if "." not in name)}
        for hook in [hook for one in packages for hook in self._before.get(one, ())]:
            hook()
        for name in [name for name in found if name in self._modules]:  # a hook may have given some up
            self._released[name] = self._modules.pop(name)
            if name != asked:  # were it there already, importlib would take its old spec and execute it again
                sys.modules[name] = self._released[name]
        self._due += [hook for one in packages for hook in self._after.pop(one, ())]


def withhold(roots: dict[str, list[str]], keep: Callable[[str], bool]) -> WithheldModules:
    """Take what the roots brought out of `sys.modules`, except what `keep` names. Runs in the standby."""
    every = {name for names in roots.values() for name in names}
    modules = {}
    for name in [name for name in sys.modules if name in every and not keep(name)]:
        modules[name] = sys.modules.pop(name)
    withheld = WithheldModules(roots, modules)
    sys.meta_path.insert(0, withheld)
    _Current.withheld = withheld
    return withheld


def is_withheld(name: str) -> bool:
    """Tell whether a standby has imported `name` ahead of time and the program has not asked for it yet."""
    return _Current.withheld is not None and _Current.withheld.holds(name)


class _Current:
    """The withheld modules of this process, if it is a standby or one of its children."""

    withheld: WithheldModules | None = None
