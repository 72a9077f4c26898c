"""`glowplug complete`: a script that completes verbs, options and rules in a shell."""

from __future__ import annotations

import argparse

NAME = "complete"
HELP = "print a script that completes glowplug's command line in bash, zsh or fish"
EXAMPLE = """
glowplug complete bash > glowplug.bash
glowplug complete fish > glowplug.fish
"""

_BASH = """\
_glowplug() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{verbs}" -- "$word"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    case "${{COMP_WORDS[1]}} $word" in
        *" -"* | explain*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
        *) COMPREPLY=($(compgen -f -- "$word")) ;;
    esac
}}
complete -o filenames -F _glowplug glowplug
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="for which shell")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from glowplug.cli.output import print_json

    script = {"bash": bash, "zsh": lambda: _ZSH + bash(), "fish": fish}[args.shell]()
    if args.json:
        print_json({"shell": args.shell, "script": script})
    else:
        print(script, end="")
    return 0


def words_of(verb: str) -> list[str]:
    """Return what can follow a verb: its options, and for `explain` the rules."""
    from glowplug.cli.main import build_parser

    parser = build_parser([verb])
    verbs = next(action.choices for action in parser._actions if isinstance(action.choices, dict))
    actions = verbs[verb]._actions
    options = [name for action in actions if action.help != argparse.SUPPRESS for name in action.option_strings]
    if verb == "explain":
        from glowplug.advise.engine import all_rules

        options += [rule.id for rule in all_rules()]
    return options


def bash() -> str:
    """Return the script for bash."""
    from glowplug.cli.main import VERBS

    cases = "\n".join(f'        {verb}) words="{" ".join(words_of(verb))}" ;;' for verb in VERBS)
    return _BASH.format(verbs=" ".join(VERBS), cases=cases)


def fish() -> str:
    """Return the script for fish."""
    from glowplug.cli.main import VERBS

    lines = []
    for verb, (_, help_line) in VERBS.items():
        told = help_line.replace("'", r"\'")
        lines.append(f"complete -c glowplug -n __fish_use_subcommand -a {verb} -d '{told}'")
        for word in words_of(verb):
            kind = (
                f"-l {word[2:]}" if word.startswith("--") else f"-s {word[1:]}" if word[0] == "-" else f"-f -a {word}"
            )
            lines.append(f"complete -c glowplug -n '__fish_seen_subcommand_from {verb}' {kind}")
    return "\n".join(lines) + "\n"
