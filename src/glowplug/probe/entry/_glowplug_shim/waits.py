"""Waiting: DNS, sockets, other programs, databases, sleeps, reads of whole files. Runs in the target.

Only calls of 1 ms or more are recorded, and only where Python makes them: TensorFlow's own reads are in the spans of
what asked for them. A call inside another recorded wait belongs to the outer one.
"""

from __future__ import annotations

import _thread

from . import user_lines
from .patching import Patcher, dress
from .recorder import Recorder, now_ns

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Describe = Callable[[tuple[Any, ...], dict[str, Any], Any], "tuple[str, int | None]"]

THRESHOLD_NS = 1_000_000


class Waits:
    """Instruments for blocking calls."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._local = _thread._local()
        self._patch = Patcher(recorder, "Python")

    def hooks(self) -> dict[str, Any]:
        """Return the hooks by module."""
        return {
            "socket": self.install_socket,
            "ssl": self.install_ssl,
            "subprocess": self.install_subprocess,
            "sqlite3": self.install_sqlite,
            "psycopg2": self.install_database,
            "pymysql": self.install_database,
            "MySQLdb": self.install_database,
            "pyodbc": self.install_database,
            "oracledb": self.install_database,
            "numpy": self.install_files("load", "loadtxt", "genfromtxt", "fromfile"),
            "pandas": self.install_files("read_csv", "read_parquet", "read_pickle", "read_json", "read_excel"),
            "pickle": self.install_files("load"),
            "json": self.install_files("load"),
            "shutil": self.install_files("copyfile"),
            "pathlib": self.install_pathlib,
            "selectors": self.install_selectors,
            "threading": self.install_threading,
            "time": self.install_time,
            "os": self.install_os,
        }

    def waiting(self, io: str, describe: Describe) -> Callable[[Any], Any]:
        """Return a decorator that records calls as waits."""
        local, recorder = self._local, self.recorder

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if getattr(local, "busy", False):
                    return original(*args, **kwargs)
                local.busy = True
                start_ns = now_ns()
                result = None
                try:
                    result = original(*args, **kwargs)
                    return result
                finally:
                    local.busy = False
                    end_ns = now_ns()
                    if end_ns - start_ns >= THRESHOLD_NS:
                        _record(recorder, io, describe, args, kwargs, result, start_ns, end_ns)

            return wrapper

        return make

    def install_time(self, module: Any) -> None:
        """Instrument `time.sleep`."""
        self._patch.replace(module, "sleep", self.waiting("sleep", lambda args, kwargs, result: ("sleep", None)))

    def install_os(self, module: Any) -> None:
        """Instrument `os.system` and waiting for children."""
        self._patch.replace(
            module, "system", self.waiting("subprocess", lambda args, kwargs, result: (str(args[0]), None))
        )
        for name in ("waitpid", "wait", "wait4"):
            self._patch.replace(module, name, self.waiting("subprocess", _describe_child), quiet=True)

    def install_socket(self, module: Any) -> None:
        """Instrument name resolution and blocking socket calls."""

        def describe_name(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[str, int | None]:
            return str(args[0] if args else kwargs.get("host", "")), None

        for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr", "getfqdn"):
            self._patch.replace(module, name, self.waiting("dns", describe_name), quiet=True)
        self._methods(
            module.socket, "socket", ("connect", "recv", "recv_into", "recvfrom", "send", "sendall", "accept")
        )

    def install_ssl(self, module: Any) -> None:
        """Instrument TLS sockets."""
        self._methods(
            module.SSLSocket, "socket", ("connect", "do_handshake", "read", "recv", "recv_into", "write", "sendall")
        )

    def _methods(self, owner: Any, io: str, names: tuple[str, ...]) -> None:
        for name in names:
            original = getattr(owner, name, None)
            if original is not None:
                # The methods are inherited from C: a Python function is put on the Python class.
                setattr(owner, name, dress(self.waiting(io, _describe_socket)(original), original))

    def install_subprocess(self, module: Any) -> None:
        """Instrument starting another program and waiting for it."""
        for name in ("wait", "communicate"):
            self._patch.replace(module.Popen, name, self.waiting("subprocess", _describe_popen), quiet=True)
        self._patch.replace(module.Popen, "__init__", self.waiting("subprocess", _describe_new), quiet=True)

    def install_sqlite(self, module: Any) -> None:
        """Instrument `sqlite3`: its connections are made of a class that times what they run."""
        waiting = self.waiting("database", _describe_database)

        class Connection(module.Connection):  # type: ignore[misc]
            __doc__ = module.Connection.__doc__
            execute = waiting(module.Connection.execute)
            executemany = waiting(module.Connection.executemany)
            executescript = waiting(module.Connection.executescript)
            commit = waiting(module.Connection.commit)

            def cursor(self, factory: Any = None) -> Any:
                return super().cursor(factory or Cursor)

        class Cursor(module.Cursor):  # type: ignore[misc]
            __doc__ = module.Cursor.__doc__
            execute = waiting(module.Cursor.execute)
            executemany = waiting(module.Cursor.executemany)
            executescript = waiting(module.Cursor.executescript)
            fetchall = waiting(module.Cursor.fetchall)

        Connection.__name__ = Connection.__qualname__ = "Connection"
        Cursor.__name__ = Cursor.__qualname__ = "Cursor"

        def make(original: Any) -> Any:
            def connect(*args: Any, **kwargs: Any) -> Any:
                if len(args) < 6:
                    kwargs.setdefault("factory", Connection)
                return original(*args, **kwargs)

            return self.waiting("database", lambda args, kwargs, result: (f"sqlite:{args[0] if args else ''}", None))(
                connect
            )

        self._patch.replace(module, "connect", make)

    def install_database(self, module: Any) -> None:
        """Instrument `connect` of a database driver."""
        name = module.__name__

        def describe(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[str, int | None]:
            return f"{name}:{kwargs.get('host', kwargs.get('server', ''))}", None

        self._patch.replace(module, "connect", self.waiting("database", describe), quiet=True)

    def install_files(self, *names: str) -> Any:
        """Return a hook that instruments functions which read whole files."""

        def hook(module: Any) -> None:
            for name in names:
                self._patch.replace(module, name, self.waiting("file", _describe_file), quiet=True)

        return hook

    def install_pathlib(self, module: Any) -> None:
        """Instrument `Path.read_bytes` and `Path.read_text`."""
        for name in ("read_bytes", "read_text"):
            self._patch.replace(module.Path, name, self.waiting("file", _describe_file), quiet=True)

    def install_selectors(self, module: Any) -> None:
        """Instrument an event loop that has nothing to do."""
        for name in ("EpollSelector", "PollSelector", "SelectSelector"):
            owner = getattr(module, name, None)
            if owner is not None and "select" in owner.__dict__:
                self._patch.replace(owner, "select", self.waiting("event_loop", _describe_nothing("event loop")))

    def install_threading(self, module: Any) -> None:
        """Instrument waiting for other threads: events, queues, futures and joins all come down to these."""
        self._patch.replace(module.Condition, "wait", self.waiting("lock", _describe_nothing("another thread")))
        self._patch.replace(module.Thread, "join", self.waiting("lock", _describe_thread))


def _record(
    recorder: Recorder,
    io: str,
    describe: Describe,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result: Any,
    start_ns: int,
    end_ns: int,
) -> None:
    try:
        target, size = describe(args, kwargs, result)
    except Exception:  # whatever the caller passed is the caller's business
        target, size = "", None
    attrs: dict[str, Any] = {"kind": "io", "io": io, "target": target[:200], "calls": 1}
    if size is not None:
        attrs["bytes"] = size
    recorder.span(start_ns, end_ns, "io_wait", attrs["target"] or io, user_lines.with_site(attrs, 4))


def _describe_socket(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[str, int | None]:
    try:
        peer = args[0].getpeername()
    except OSError:
        peer = args[1] if len(args) > 1 else ""
    address = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) and len(peer) >= 2 else str(peer)
    size = len(result) if isinstance(result, (bytes, bytearray)) else result if isinstance(result, int) else None
    return address, size


def _describe_popen(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[str, int | None]:
    command = args[0].args
    return " ".join(map(str, command)) if isinstance(command, (list, tuple)) else str(command), None


def _describe_new(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[str, int | None]:
    command = args[1] if len(args) > 1 else kwargs.get("args", "")
    return " ".join(map(str, command)) if isinstance(command, (list, tuple)) else str(command), None


def _describe_child(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[str, int | None]:
    return f"process {args[0]}" if args else "any child", None


def _describe_database(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[str, int | None]:
    statement = " ".join(str(args[1]).split()) if len(args) > 1 else "statement"
    return statement[:120], None


def _describe_file(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[str, int | None]:
    source = args[0] if args else next(iter(kwargs.values()), "")
    name = getattr(source, "name", source) if hasattr(source, "read") else source
    size = len(result) if isinstance(result, (bytes, str)) else getattr(result, "nbytes", None)
    return str(name), size if isinstance(size, int) else None


def _describe_thread(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[str, int | None]:
    return f"thread {args[0].name}", None


def _describe_nothing(target: str) -> Describe:
    return lambda args, kwargs, result: (target, None)
