"""What a standby's child is asked to call: a program, or a function. Runs in the child."""

from __future__ import annotations

from typing import Any

from glowplug.core.target import Target

from .entering import leave_to_children
from .options import Options
from .program import execute_and_report
from .start import prepare


def run_program(kind: str, name: str, arguments: list[str], options: dict[str, Any]) -> int:
    """Run the program with the parts of `glowplug run` that `options` names; return its exit code or minus a signal."""
    from glowplug.standby.child.withheld import is_withheld

    chosen = Options(**options)
    leave_to_children(chosen)
    prepare(chosen, warm=is_withheld("tensorflow"))
    return execute_and_report(Target(kind, name, tuple(arguments)))


def call(target: str, arguments: list[Any], directory: str) -> int:
    """Call `package.module:function`, found as a program in `directory` would find it; return its exit code."""
    import sys
    import traceback
    from importlib import import_module

    if sys.path and sys.path[0] == "":
        sys.path[0] = directory
    module, _, name = target.partition(":")
    try:
        result = getattr(import_module(module), name)(*arguments)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except Exception:  # the process boundary: the function's own failure, told as a program's would be
        traceback.print_exc()
        return 1
    return result & 0xFF if isinstance(result, int) else 0
