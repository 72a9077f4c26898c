"""The program of a standby's process: `python boot.py SETTINGS`. It is run as a file, never imported.

SETTINGS is the repr of a dict: `root` (where this package is), `path` (the caller's `sys.path`), `kind`, `preload`,
`companion`, `idle_s`, `ready` (a descriptor to report on) and `turn` (one that holds a lock until then, or None). Only
the standard library's built-in modules are used before `sys.path` is the caller's.
"""

if __name__ == "__main__":
    import sys
    from ast import literal_eval

    settings = literal_eval(sys.argv[1])
    sys.path[:] = [settings["root"], *settings["path"]]
    from glowplug.standby.server import main

    sys.path[:] = settings["path"]
    sys.exit(main(settings))
