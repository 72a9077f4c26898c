"""What is withheld comes back whole when it is first imported."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest

from glowplug.standby.child import withheld


@pytest.fixture
def modules_withheld():
    names = ["root_a", "root_a.sub", "shared", "shared.part"]
    modules = {}
    for name in names:
        module = ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package="." not in name)
        if "." not in name:
            module.__path__ = []
        modules[name] = module
    for name, module in modules.items():
        if "." in name:
            parent, _, last = name.partition(".")
            setattr(modules[parent], last, module)
    made = withheld.WithheldModules({"root_a": names}, dict(modules))
    sys.meta_path.insert(0, made)
    yield made, modules
    sys.meta_path.remove(made)
    for name in names:
        sys.modules.pop(name, None)


def test_a_root_brings_all_that_came_with_it(modules_withheld):
    made, modules = modules_withheld
    assert made.holds("shared")
    import root_a.sub

    assert root_a is modules["root_a"]
    assert sys.modules["shared.part"] is modules["shared.part"]
    assert not made.holds("shared")
    assert root_a.__spec__.name == "root_a"
    assert not getattr(root_a.__spec__, "_initializing", False)


def test_a_package_comes_alone(modules_withheld):
    made, modules = modules_withheld
    import shared.part

    assert shared.part is modules["shared.part"]
    assert made.holds("root_a.sub")
    assert "root_a" not in sys.modules


def test_a_hook_may_refuse_and_nothing_is_visible(modules_withheld):
    made, _ = modules_withheld
    made.before_release("root_a", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("root_a")
    assert "shared" not in sys.modules
    assert made.holds("root_a")


def test_hooks_after_the_release_see_the_module(modules_withheld):
    made, modules = modules_withheld
    seen = []
    made.after_release("shared", lambda: seen.append(sys.modules["shared"]))
    importlib.import_module("shared")
    importlib.import_module("shared.part")
    assert seen == [modules["shared"]]
