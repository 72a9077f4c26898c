"""`glowplug explain`: the page of a rule, from the package itself: no network is needed."""

from __future__ import annotations

import argparse

NAME = "explain"
HELP = "show the page of a rule: its symptom, the reason, the remedy, how the saving is estimated"
EXAMPLE = """
glowplug explain
glowplug explain two_traces_on_first_step
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("rule", metavar="RULE", nargs="?", help="a rule as a finding names it; all are listed without")


def run(args: argparse.Namespace) -> int:
    """Print a page, or the list of rules."""
    from glowplug.advise.engine import all_rules, read_page
    from glowplug.cli.output import print_json

    rules = {rule.id: rule for rule in all_rules()}
    if args.rule is None:
        if args.json:
            print_json({"rules": [{"rule": rule.id, "symptom": rule.symptom} for rule in rules.values()]})
            return 0
        width = max(map(len, rules))
        for rule in rules.values():
            print(f"{rule.id:<{width}}  {rule.symptom}")
        return 0
    if args.rule not in rules:
        from difflib import get_close_matches

        from glowplug.core.errors import UsageError

        near = get_close_matches(args.rule, rules, n=1)
        remedy = f"did you mean {near[0]}?" if near else "glowplug explain lists them"
        raise UsageError("there is no such rule", seen=args.rule, remedy=remedy)
    page = read_page(args.rule)
    if args.json:
        print_json({"rule": args.rule, "symptom": rules[args.rule].symptom, "page": page})
    else:
        print(page, end="")
    return 0
