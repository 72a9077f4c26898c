"""Prints what a program can see of the way it was started."""

import os
import signal
import sys

print(__name__, __file__, __spec__ and __spec__.name, __package__, sorted(globals().keys() - {"__annotations__"}))
print(sys.argv, sys.orig_argv[1:], sys.path[0], sys.modules["__main__"].__dict__ is globals())
print(
    type(__loader__).__name__, os.environ.get("PWD"), signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
)
