"""`python -m glowplug`: the same as the command `glowplug`."""

import sys

from glowplug.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
