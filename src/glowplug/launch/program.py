"""Runs a script, a module, a piece of code or standard input as `__main__`, as the interpreter itself would.

`execute` gives the program its `sys.argv`, `sys.orig_argv`, `sys.path[0]` and a fresh `__main__`. What the program
raises goes on to the caller, and from there to the top of the interpreter, which knows best what an exit code, a
`SystemExit` or a Ctrl-C mean; only the frames of ours are taken out of the traceback on the way. Nothing here knows of
TensorFlow.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, ModuleType, TracebackType
from typing import Any

from glowplug.core.target import CODE, MODULE, SCRIPT, STDIN, Target


def execute(target: Target) -> None:
    """Run the program in this process, on its main thread, and return when it has ended without an exception."""
    _set_arguments(target)
    if target.kind == MODULE:
        _run(_run_module, target.name)
    elif target.kind == SCRIPT and not _is_plain_file(target.name):
        if _path_is_safe():
            sys.path.insert(0, _absolute(target.name))
        _set_first_path(_absolute(target.name))
        _run(_run_container)
    elif target.kind == SCRIPT:
        _set_first_path(os.path.dirname(os.path.realpath(target.name)))  # noqa: PTH120 - as above
        _run(_run_script, target.name)
    elif target.kind == STDIN:
        _set_first_path("")
        _run(_run_source, sys.stdin.buffer.read(), "<stdin>")
    else:
        _set_first_path("")
        _run(_run_source, target.name, "<string>")


def execute_and_report(target: Target) -> int:
    """Run the program and report its end as the interpreter would: return an exit status, or -2 after a Ctrl-C.

    For a forked child that cannot let an exception reach the top of an interpreter. The caller then ends the process:
    by SIGINT where the result is negative.
    """
    try:
        execute(target)
    except SystemExit as error:
        status = _exit_status(error.code)
    except BaseException as error:
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        sys.excepthook(type(error), error, error.__traceback__)
        status = -2 if isinstance(error, KeyboardInterrupt) else 1
    else:
        status = 0
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            status = status or (120 if stream is sys.stdout else 0)
    return status


def _run(runner: Any, *arguments: Any) -> None:
    """Call the runner; when something escapes from it, see that the traceback shows the program's frames alone."""
    try:
        runner(*arguments)
    except SystemExit:
        raise
    except BaseException as error:
        _trim_when_reported(error)
        raise


def _run_script(name: str) -> None:
    from importlib.machinery import SourceFileLoader, SourcelessFileLoader

    path = _absolute(name)
    loader: Any
    if path.endswith(".pyc"):
        loader = SourcelessFileLoader("__main__", path)
        code = loader.get_code("__main__")
    else:
        loader = SourceFileLoader("__main__", path)
        with open(path, "rb") as stream:  # noqa: PTH123 - as above
            code = compile(stream.read(), path, "exec", dont_inherit=True)
    _exec_as_main(code, {"__file__": path, "__cached__": None, "__loader__": loader})


def _run_source(source: str | bytes, name: str) -> None:
    import _frozen_importlib

    code = compile(source, name, "exec", dont_inherit=True)
    _exec_as_main(code, {"__loader__": _frozen_importlib.BuiltinImporter})


def _run_module(name: str) -> None:
    import runpy

    _set_first_path(os.getcwd())  # noqa: PTH109 - as above
    _new_main()
    runpy._run_module_as_main(name, alter_argv=True)  # type: ignore[attr-defined]


def _run_container() -> None:
    import runpy

    _new_main()
    runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]


def _exec_as_main(code: CodeType, names: dict[str, object]) -> None:
    main = _new_main()
    main.__dict__.update(names)
    exec(code, main.__dict__)


def _new_main() -> ModuleType:
    import builtins

    main = ModuleType("__main__")
    main.__dict__.update({"__builtins__": builtins, "__annotations__": {}})
    _kept.append(sys.modules["__main__"])  # its names would be cleared while the frames that use them still run
    sys.modules["__main__"] = main
    return main


_kept: list[ModuleType] = []


def _set_arguments(target: Target) -> None:
    options = {MODULE: ["-m", target.name], CODE: ["-c", target.name]}.get(target.kind, [target.name])
    first = {MODULE: "-m", CODE: "-c"}.get(target.kind, target.name)
    sys.argv = [first, *target.arguments]
    sys.orig_argv = [sys.orig_argv[0] if sys.orig_argv else sys.executable, *options, *target.arguments]


def _absolute(path: str) -> str:
    """Return a path as the interpreter makes it absolute: what is in the middle of it stays as it was written."""
    return path if path.startswith("/") else f"{os.getcwd()}/{path.removeprefix('./')}"  # noqa: PTH109 - as above


def _is_plain_file(path: str) -> bool:
    """Say whether a path is source or bytecode; a directory or a zip file is imported from instead."""
    if os.path.isdir(path):  # noqa: PTH112 - as above
        return False
    with open(path, "rb") as stream:  # noqa: PTH123 - as above
        if stream.read(4) == b"PK\x03\x04":
            return False
    return True


def _path_is_safe() -> bool:
    return bool(getattr(sys.flags, "safe_path", False) or sys.flags.isolated)


def _set_first_path(entry: str) -> None:
    """Put the program's own folder where the interpreter has put ours, unless it was told to put nothing there."""
    if not _path_is_safe():
        sys.path[0] = entry


def _exit_status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _trim_when_reported(error: BaseException) -> None:
    """Have the hook that reports `error` see a traceback that begins with the program's own frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    hook = sys.excepthook

    def report(kind: type[BaseException], value: BaseException, seen: TracebackType | None) -> None:
        sys.excepthook = hook
        if value is error:
            seen = sys.last_traceback = trace
            value = value.with_traceback(trace)
        hook(kind, value, seen)

    sys.excepthook = report
