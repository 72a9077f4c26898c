"""`glowplug doctor`: what this machine can and cannot do."""

from __future__ import annotations

import argparse

NAME = "doctor"
HELP = "say what this machine can and cannot do"
EXAMPLE = """
glowplug doctor
glowplug doctor --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options: it has none of its own."""


def run(args: argparse.Namespace) -> int:
    """Look at everything; return 1 if something is broken."""
    from dataclasses import asdict

    from glowplug.cli.checks import all_checks
    from glowplug.cli.output import print_json

    checks = list(all_checks())
    broken = sum(check.status == "broken" for check in checks)
    if args.json:
        print_json({"healthy": not broken, "checks": [asdict(check) for check in checks]})
        return int(bool(broken))
    for check in checks:
        print(f"{check.status:<8} {check.subject:<15} {check.text}")
        if check.remedy:
            print(f"{'':<24} -> {check.remedy}")
    warnings = sum(check.status == "warning" for check in checks)
    print(f"\n{broken} broken, {warnings} warning{'s' * (warnings != 1)}")
    return int(bool(broken))
