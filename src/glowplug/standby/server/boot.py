"""The program of a standby's process: `python boot.py`, with its settings on standard input. Never imported.

The settings are the repr of a dict: `root` (where this package is), `path` (the caller's `sys.path`), `kind`,
`preload`, `companion`, `idle_s`, `name`, `key`, and descriptors: `place` (the standbys' directory), `ready` (to report
on) and `turn` (it holds a lock until then, or None). Only the standard library's built-in modules are used before
`sys.path` is the caller's.
"""

if __name__ == "__main__":
    import os
    import sys
    from ast import literal_eval

    if os.fork():
        os._exit(0)  # so that the standby is nobody's child: a program that waits for its own must not find it
    with open(0, "rb", closefd=False) as stream:
        settings = literal_eval(stream.read().decode("utf-8", "surrogateescape"))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.path[:] = [settings["root"], *settings["path"]]
    from glowplug.standby.server.main import main

    sys.path[:] = settings["path"]
    sys.exit(main(settings))
