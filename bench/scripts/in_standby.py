"""Runs a script in a standby: in_standby.py MODULES SCRIPT. Starts one that preloads these modules if there is none."""

import sys

from glowplug.core.target import Target
from glowplug.launch.options import Options
from glowplug.launch.warm import run_in_standby
from glowplug.standby.client.foreground import leave

names, script = sys.argv[1:]
outcome = run_in_standby(Target("script", script), Options(), start=True, preload=tuple(names.split(",")))
if outcome.code is None:
    sys.exit(f"not run: {outcome.note}")
leave(outcome.code)
