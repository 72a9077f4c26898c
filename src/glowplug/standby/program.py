"""Runs a script, a module or code as `__main__` in a child: the bridge to `glowplug.imports`."""

from __future__ import annotations

from typing import Any


def run_program(kind: str, name: str, arguments: list[str], options: dict[str, Any]) -> int:
    """Run the program with the parts of `glowplug run` that `options` names; return its exit code or minus a signal."""
    from glowplug.imports.program import Target, execute_and_report
    from glowplug.imports.start import Options, prepare

    prepare(Options(**options))
    return execute_and_report(Target(kind, name, tuple(arguments)))
