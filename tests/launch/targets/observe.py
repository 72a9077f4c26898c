"""Writes what a program can observe about itself, as JSON, to the file that `OBSERVE` names. Stock Python decides."""

import sys

at_first = {
    "modules": sorted(sys.modules),
    "path": list(sys.path),
    "argv": list(sys.argv),
    "main names": sorted(globals()),
    "frames": [],
    "threads known": "threading" in sys.modules,
}
frame = sys._getframe()
while frame is not None:
    at_first["frames"].append(frame.f_code.co_filename)
    frame = frame.f_back
at_first["frames"] = len(at_first["frames"])

import atexit
import contextlib
import decimal
import faulthandler
import gc
import inspect
import io
import json
import locale
import logging
import os
import pickle
import random
import resource
import select
import signal
import site
import socket
import subprocess
import tempfile
import threading
import time
import traceback
import tracemalloc
import types
import warnings
import weakref

OURS = ("glowplug",)


def described(value):
    if isinstance(value, str | int | float | bool | type(None)):
        return value
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def text_of(function, *arguments):
    try:
        return repr(function(*arguments))
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def stream(name):
    one = getattr(sys, name)
    if one is None:
        return None
    return {
        "encoding": one.encoding,
        "errors": one.errors,
        "line buffering": one.line_buffering,
        "write through": one.write_through,
        "name": one.name,
        "mode": one.mode,
        "newlines": repr(one.newlines),
        "isatty": one.isatty(),
        "fileno": one.fileno(),
        "class": described(one),
        "buffer": described(one.buffer),
        "raw": described(getattr(one.buffer, "raw", one.buffer)),
        "closefd": getattr(getattr(one.buffer, "raw", one.buffer), "closefd", None),
        "is the original": one is getattr(sys, f"__{name}__"),
    }


def descriptors():
    found = {}
    for entry in sorted(os.listdir("/proc/self/fd"), key=int):
        with contextlib.suppress(OSError):
            found[entry] = (os.readlink(f"/proc/self/fd/{entry}").split(":")[0], os.get_inheritable(int(entry)))
    return {name: kind for name, kind in found.items() if "/proc/" not in kind[0]}


def process_status():
    wanted = (
        "Umask", "State", "TracerPid", "Uid", "Gid", "Groups", "Threads", "SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm",
        "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Cpus_allowed", "Mems_allowed",
    )  # fmt: skip
    with open("/proc/self/status") as lines:
        pairs = [line.rstrip("\n").split(":\t", 1) for line in lines]
    return {name: value for name, value in (pair for pair in pairs if len(pair) == 2) if name in wanted}


def recursion():
    def deeper(depth):
        return deeper(depth + 1) if depth < 10_000_000 else depth

    try:
        deeper(0)
    except RecursionError as error:
        depth, trace = 0, error.__traceback__
        while trace is not None:
            depth, trace = depth + 1, trace.tb_next
        return depth
    return -1


def fails():
    def inner():
        return {}["missing"]

    try:
        inner()
    except KeyError:
        return traceback.format_exc()


def warned():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (lambda: warnings.warn("here", UserWarning, stacklevel=2))()
        (lambda: warnings.warn("far", UserWarning, stacklevel=9))()
    return [(one.filename, one.lineno) for one in caught]


def dumped():
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        return file.read().decode().split("\n", 1)[1]


def children():

    def run(*words, **options):
        return subprocess.run([sys.executable, *words], capture_output=True, text=True, **options).stdout

    shown = "import os, sys; print(sys.argv, sys.path, sorted(os.environ.items()))"
    return {
        "subprocess": run("-c", shown),
        "subprocess isolated": run("-I", "-c", "import sys; print(sys.path, sys.flags)"),
        "subprocess with its own environment": run("-c", shown, env=dict(os.environ)),
        "subprocess without an environment": run("-c", shown, env={}),
        "system": os.system("exit 3"),
        "exit code of a signal": subprocess.run(
            [sys.executable, "-c", "import os; os.abort()"], capture_output=True
        ).returncode,
    }


class Kept:
    def __init__(self, value):
        self.value = value


def observed():
    rows = {f"at first: {name}": value for name, value in at_first.items() if name != "modules"}
    rows["at first: modules"] = [name for name in at_first["modules"] if not name.startswith(OURS)]
    for name in ("argv", "orig_argv", "executable", "_base_executable", "prefix", "base_prefix", "exec_prefix", "flags",
                 "warnoptions", "_xoptions", "dont_write_bytecode", "pycache_prefix", "byteorder", "maxsize", "hexversion",
                 "platlibdir", "float_repr_style", "hash_info", "int_info", "thread_info", "version", "api_version",
                 "copyright", "implementation", "stdlib_module_names", "builtin_module_names"):  # fmt: skip
        value = getattr(sys, name, None)
        rows[f"sys.{name}"] = repr(sorted(value) if isinstance(value, frozenset) else value)
    for name in ("getrecursionlimit", "getswitchinterval", "getdefaultencoding", "getfilesystemencoding",
                 "getfilesystemencodeerrors", "getdlopenflags", "gettrace", "getprofile", "get_asyncgen_hooks",
                 "get_coroutine_origin_tracking_depth", "is_finalizing", "get_int_max_str_digits"):  # fmt: skip
        rows[f"sys.{name}()"] = text_of(getattr(sys, name)) if hasattr(sys, name) else None
    for name in ("displayhook", "excepthook", "breakpointhook", "unraisablehook", "__displayhook__", "__excepthook__",
                 "__breakpointhook__", "__unraisablehook__", "ps1", "__interactivehook__", "last_type", "exc_info"):  # fmt: skip
        value = getattr(sys, name, "missing")
        rows[f"sys.{name}"] = (
            f"{described(value)} {getattr(value, '__module__', '')} {getattr(value, '__qualname__', value)}"
        )
    rows["excepthook is the original"] = sys.excepthook is sys.__excepthook__
    rows["meta_path"] = [
        getattr(one, "__name__", described(one)) for one in sys.meta_path if not described(one).startswith(OURS)
    ]
    rows["path_hooks"] = [getattr(one, "__qualname__", described(one)) for one in sys.path_hooks]
    rows["path_importer_cache"] = sorted({str(described(one)) for one in sys.path_importer_cache.values()})
    rows["path_importer_cache names a folder of ours"] = [
        one for one in sys.path_importer_cache if "launch/entry" in one
    ]
    for name in ("stdin", "stdout", "stderr"):
        rows[name] = stream(name)
    main = sys.modules["__main__"]
    for name in ("__name__", "__doc__", "__package__", "__spec__", "__file__", "__cached__", "__loader__", "__builtins__",
                 "__annotations__", "__path__", "__dict__"):  # fmt: skip
        value = getattr(main, name, "missing")
        rows[f"__main__.{name}"] = value if isinstance(value, str | None) else described(value)
    rows["__main__ is this"] = main.__dict__ is globals()
    rows["__main__ loader"] = text_of(lambda: (__loader__.name, __loader__.path))
    rows["__main__ source"] = text_of(lambda: len(inspect.getsource(main)))
    rows["stack depth"] = len(inspect.stack())
    rows["stack files"] = [os.path.basename(one.filename) for one in inspect.stack()]
    rows["depth until the limit"] = recursion()
    rows["traceback"] = fails()
    rows["traceback.extract_stack"] = len(traceback.extract_stack())
    rows["warning"] = warned()
    rows["faulthandler"] = (faulthandler.is_enabled(), dumped())
    rows["signals"] = {
        number.name: described(signal.getsignal(number))
        if callable(signal.getsignal(number)) and not isinstance(signal.getsignal(number), signal.Handlers)
        else str(signal.getsignal(number))
        for number in sorted(signal.valid_signals())
        if hasattr(number, "name")
    }
    rows["blocked signals"] = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    rows["wakeup descriptor"] = signal.set_wakeup_fd(-1)
    rows["timers"] = [
        signal.getitimer(which) for which in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
    ]
    rows["pending signals"] = sorted(signal.sigpending())
    rows["descriptors"] = descriptors()
    rows["status"] = process_status()
    rows["limits"] = {
        name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")
    }
    rows["priority"] = os.getpriority(os.PRIO_PROCESS, 0)
    rows["scheduler"] = (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority)
    rows["affinity"] = sorted(os.sched_getaffinity(0))
    rows["cwd"] = os.getcwd()
    rows["umask"] = (os.umask(0o77), os.umask(0o77))[0]
    os.umask(rows["umask"])
    rows["ids"] = (os.getresuid(), os.getresgid(), sorted(os.getgroups()))
    rows["root directory"] = os.readlink("/proc/self/root")
    rows["session leads"] = os.getsid(0) == os.getpid()
    rows["group leads"] = os.getpgrp() == os.getpid()
    rows["parent"] = os.environ.get("PARENT") == str(os.getppid())
    rows["command line"] = open("/proc/self/cmdline", "rb").read().decode()
    rows["process name"] = open("/proc/self/comm").read()
    rows["executable file"] = os.readlink("/proc/self/exe")
    rows["oom score"] = open("/proc/self/oom_score_adj").read()
    rows["namespaces"] = {name: os.readlink(f"/proc/self/ns/{name}") for name in sorted(os.listdir("/proc/self/ns"))}
    rows["cgroup"] = open("/proc/self/cgroup").read()
    rows["environment"] = dict(os.environ)
    rows["environment of bytes"] = sorted(os.fsdecode(name) for name in os.environb)
    rows["locale"] = [text_of(locale.getlocale), locale.getpreferredencoding(False), locale.setlocale(locale.LC_ALL)]
    rows["time zone"] = (time.tzname, time.timezone, time.daylight)
    rows["hash of a string"] = hash("glowplug")
    rows["order of a set"] = list({"a", "b", "c", "d", "e", "f"})
    rows["garbage collection"] = (
        gc.isenabled(),
        gc.get_threshold(),
        gc.get_debug(),
        len(gc.callbacks),
        gc.get_freeze_count(),
    )
    rows["garbage"] = len(gc.garbage)
    rows["threads"] = [(one.name, one.daemon) for one in threading.enumerate()]
    rows["main thread"] = (
        threading.current_thread() is threading.main_thread() and threading.main_thread().ident == threading.get_ident()
    )
    rows["native id is the process"] = threading.get_native_id() == os.getpid()
    rows["thread stack size"] = threading.stack_size()
    rows["thread hooks"] = (
        described(threading.excepthook),
        threading.gettrace() if hasattr(threading, "gettrace") else None,
    )
    rows["threads of the kernel"] = len(os.listdir("/proc/self/task"))
    rows["warning filters"] = [(one[0], one[2].__name__, str(one[1]), str(one[3]), one[4]) for one in warnings.filters]
    rows["warnings.showwarning"] = warnings.showwarning is warnings._showwarning_orig
    rows["warnings seen"] = sorted(map(str, globals().get("__warningregistry__", {})))
    rows["logging"] = (
        logging.root.level,
        [described(one) for one in logging.root.handlers],
        sorted(logging.root.manager.loggerDict),
        logging.getLoggerClass().__name__,
        logging.raiseExceptions,
        logging.lastResort is not None,
    )
    rows["atexit"] = atexit._ncallbacks()
    rows["decimal"] = repr(decimal.getcontext())
    rows["tracemalloc"] = tracemalloc.is_tracing()
    rows["random"] = (random.seed(7), random.random())[1]
    rows["random starts differently"] = random.Random().random() != random.Random().random()
    rows["socket timeout"] = socket.getdefaulttimeout()
    rows["temporary folder"] = tempfile.gettempdir()
    rows["site"] = (site.ENABLE_USER_SITE, site.PREFIXES, site.getsitepackages(), getattr(site, "USER_SITE", None))
    rows["builtins"] = sorted(vars(sys.modules["builtins"]))
    rows["exit and quit"] = [repr(exit), repr(quit)]
    rows["pickle of a class"] = pickle.dumps(Kept(3)).hex()
    rows["pickle comes back"] = type(pickle.loads(pickle.dumps(Kept(3)))) is Kept
    rows["weak references die"] = weakref.ref(Kept(4))() is None
    rows["module of a class"] = (Kept.__module__, Kept.__qualname__, Kept.__init__.__module__, repr(Kept))
    rows["input can be read"] = sys.stdin.read() if sys.stdin is not None else None
    rows["input ends"] = bool(select.select([0], [], [], 0)[0]) if sys.stdin is not None else None
    rows["code file"] = sys._getframe().f_code.co_filename
    rows["code flags"] = sys._getframe(1).f_code.co_flags
    rows["children"] = children()
    rows["resource usage of children"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime > 0
    rows["clock of the processor runs"] = time.process_time() > 0
    rows["import system"] = (
        __import__ is sys.modules["builtins"].__import__,
        described(__import__),
        importlib_functions(),
    )
    rows["modules at the end"] = sorted(name for name in sys.modules if not name.startswith(OURS))
    rows["text of help"] = helped()
    return rows


def importlib_functions():
    import _imp
    import importlib._bootstrap as bootstrap

    return [
        bootstrap._find_and_load.__code__.co_filename,
        described(_imp.create_dynamic),
        described(bootstrap._call_with_frames_removed),
    ]


def helped():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        help(Kept)
    return out.getvalue()


if __name__ == "__main__":
    document = {name: json.loads(json.dumps(value, default=repr)) for name, value in observed().items()}
    with open(os.environ["OBSERVE"], "w") as file:
        json.dump(document, file)
