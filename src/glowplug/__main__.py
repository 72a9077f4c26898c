"""`python -m glowplug`: the same as the command `glowplug`."""

import sys

# `-m` puts the current folder in front: what is in there is a program's and not ours. The command has its own folder.
if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
    sys.path[0] = sys.exec_prefix

from glowplug.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
