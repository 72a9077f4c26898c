"""The command lines of the documentation: what is run here, what is run by another test, and what only installs."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .blocks import ROOT, Block, all_blocks

# What fetches packages, or is the project's own Makefile: looked at and not run.
_INSTALLS = re.compile(r"^(make\b|(\S+/)?pip install\b|python3? -m venv\b)")
# What another test runs; each must name the test's file and a word that is in it.
ELSEWHERE: tuple[tuple[str, str, str], ...] = (
    (r"^glowplug demo", "tests/cli/test_demo.py", '"demo"'),
    (r"^glowplug bench", "tests/cli/test_bench.py", '"bench"'),
    (r"hdfs://|HADOOP_CONF_DIR", "tests/clusters/test_fleet.py", "hdfs"),
    (r"^examples/fleet/", "tests/examples/test_fleet.py", "deploy.sh"),
    (r"^docker |examples/deploy$|^mkdir -p models/half|^pip wheel", "tests/examples/test_deploy.py", "Dockerfile"),
    (r"^sudo (systemctl|journalctl)", "tests/examples/test_deploy.py", "systemd-analyze"),
    (r"^pytest --glowplug-budget", "tests/cli/test_pytest_plugin.py", "--glowplug-budget"),
    (r"^glowplug cluster ", "tests/cluster/test_cli.py", "the_whole_way"),
    (r"--cold-cache", "tests/probe/test_run.py", "cold_cache"),
    (r"python3\.15", "tests/loader/test_two_libraries.py", "OTHER_PYTHON"),
)
# What imports TensorFlow, or starts workers or servers.
_HEAVY = re.compile(r"^glowplug (pack|serve|standby|run --standby)|import tensorflow|s3://|examples/startup|--steps 2")
_SERVES = re.compile(r"^glowplug serve\b")
_JUDGES = re.compile(r"^glowplug (budget|compare)\b")  # 1 is their answer, not a failure


@dataclass(frozen=True, slots=True)
class Command:
    """One command line as it is printed, its comment included."""

    page: str
    line: int
    text: str
    block: int  # the line at which its block begins
    printed: str = ""  # what the page says it answers

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def group(self) -> str:
        """What is run in one shell: the commands of a page; of the command line's reference, those of one verb."""
        return f"{self.page}:{self.block}" if self.page.endswith("reference/cli.md") else self.page

    @property
    def installs(self) -> bool:
        return bool(_INSTALLS.search(self.text))

    @property
    def elsewhere(self) -> tuple[str, str] | None:
        return next(((path, word) for pattern, path, word in ELSEWHERE if re.search(pattern, self.text)), None)

    @property
    def heavy(self) -> bool:
        return bool(_HEAVY.search(self.text))

    @property
    def serves(self) -> bool:
        return bool(_SERVES.search(self.text))

    @property
    def outputs(self) -> list[str]:
        """What it writes, and would not replace: pages do not tell the reader to remove what an earlier one wrote."""
        named = re.findall(r"(?:-o|--output|--html) (\S+)", self.text)
        named += [f"{key}{end}" for key in re.findall(r"keygen (\S+)", self.text) for end in ("", ".pub")]
        named += re.findall(r"cache export (\S+)", self.text)
        return [path for path in named if "://" not in path]

    @property
    def good_codes(self) -> tuple[int, ...]:
        return (0, 1) if _JUDGES.search(self.text) else (0,)

    @property
    def glowplug_words(self) -> list[str] | None:
        """The arguments of `glowplug`, where that is the program; what stands after a pipe or a redirection is left."""
        words = shlex.split(self.text, comments=True)
        for sign in (">", "|", "&&"):
            words = words[: words.index(sign)] if sign in words else words
        return words[1:] if words[:1] == ["glowplug"] else None


def all_commands() -> list[Command]:
    """Return every command line of every page, in order."""
    return [command for block in all_blocks() for command in _commands_of(block)]


def _commands_of(block: Block) -> list[Command]:
    if block.language == "yaml":
        runs = re.findall(r"^ *- run: (.+)$", block.text, re.M)
        return [Command(block.page, block.line, text, block.line) for text in runs]
    if block.language != "console":
        return []
    found: list[Command] = []
    for number, line in enumerate(block.text.splitlines(), block.line):
        if line.startswith("$ "):
            found.append(Command(block.page, number, line.removeprefix("$ "), block.line))
        elif found:
            last = found[-1]
            found[-1] = replace(last, printed=f"{last.printed}{line}\n")
        else:
            raise ValueError(f"{block.name} is a console without a command in its first line")
    return found


def extras() -> set[str]:
    """Return the extras that the package has."""
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def script(commands: Sequence[Command], ports: Mapping[str, str]) -> str:
    """Return a shell script that runs commands as they are printed, but for ports, and notes the exit code of each.

    Variables live on from one command to the next. A server runs until the next one or the end; it counts as started
    when it has said so.
    """
    lines = ["serving=", 'stop() { test -z "$serving" || { kill -TERM $serving; wait $serving 2>&-; serving=; }; }']
    for number, command in enumerate(commands):
        text = command.text
        lines += [f"rm -rf {path}" for path in command.outputs]
        for printed, free in ports.items():
            text = text.replace(printed, free)
        if command.serves:
            lines.append("stop")
            words = shlex.split(text, comments=True)
            words += [] if any("rest_api_port" in word for word in words) else ["--rest-port", ports["8501"]]
            words += [] if any("--port" in word for word in words) else ["--grpc-port", ports["8500"]]
            lines.append(f"exec {{answers}}< <(exec {shlex.join(words)} 2>{number}.err)")
            lines.append(f'serving=$!; read -r first <&$answers; echo "$first" >{number}.out')
            lines.append(f"case \"$first\" in serving*) echo '{number} 0';; *) echo '{number} 99';; esac >>codes")
        else:
            lines += ["{", text, f"}} >{number}.out 2>{number}.err </dev/null", f"echo '{number}' $? >>codes"]
    return "\n".join([*lines, "stop", ""])


def lines_of(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
