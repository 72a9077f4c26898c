"""Glowplug measures, explains and removes the cold start of TensorFlow.

Names are looked up when they are first used: importing this package loads nothing else.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost every start 5 ms
if TYPE_CHECKING:
    from .convert.pack import pack
    from .core.errors import GlowplugError
    from .core.marks import mark
    from .launch.profiling import profile
    from .launch.spawning import spawn
    from .loader.ahead import load_async, preload
    from .loader.model import Model
    from .loader.open import load
    from .loader.remote import RemoteModel

    __version__: str

_HOMES = {
    "GlowplugError": ".core.errors",
    "Model": ".loader.model",
    "load": ".loader.open",
    "load_async": ".loader.ahead",
    "mark": ".core.marks",
    "pack": ".convert.pack",
    "preload": ".loader.ahead",
    "profile": ".launch.profiling",
    "RemoteModel": ".loader.remote",
    "spawn": ".launch.spawning",
    "__version__": ".core.version",
}

__all__ = [
    "GlowplugError",
    "Model",
    "load",
    "load_async",
    "mark",
    "pack",
    "preload",
    "profile",
    "RemoteModel",
    "spawn",
    "__version__",
]


if not TYPE_CHECKING:  # a type checker that saw this would take any name for one of ours

    def __getattr__(name):
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'glowplug' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(home, __name__), "VERSION" if name == "__version__" else name)
        globals()[name] = value
        return value


def load_ipython_extension(shell: object) -> None:
    """Give a notebook the cell magic `%%glowplug`: `%load_ext glowplug`."""
    from importlib import import_module

    import_module(".launch.profiling", __name__).install_magic(shell)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
