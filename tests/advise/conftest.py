"""A small language for making profiles by hand: times in seconds, spans nested by `within`."""

from __future__ import annotations

import importlib
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from glowplug.advise.engine import all_rules
from glowplug.advise.match import Match
from glowplug.advise.view import View
from glowplug.cli.main import build_parser
from glowplug.core.profile import PHASES, Loop, Process, Profile, Round, Span

PID = 100
SECOND = 1_000_000_000


def ns(seconds: float) -> int:
    return round(seconds * SECOND)


@dataclass
class Maker:
    """Collects spans, loops and processes, and makes the profile."""

    command: tuple[str, ...] = ("train.py",)
    exit_code: int = 0
    environment: dict[str, Any] = field(default_factory=lambda: {"runtime_used": True, "cpu_count": 2})
    spans: list[Span] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)

    def span(
        self,
        kind: str,
        start: float,
        duration: float,
        *,
        within: Span | None = None,
        pid: int = PID,
        thread: int | None = None,
        phase: str = "build",
        name: str | None = None,
        **attrs: Any,
    ) -> Span:
        span = Span(
            id=len(self.spans) + 1,
            parent=within.id if within else None,
            pid=pid,
            thread=pid if thread is None else thread,
            phase=phase,
            name=name or kind,
            start_ns=ns(start),
            end_ns=ns(start + duration),
            attrs={"kind": kind, **attrs},
        )
        self.spans.append(span)
        return span

    def step(self, start: float, duration: float, index: int, *, mode: str = "train", **attrs: Any) -> Span:
        phase = "first_step" if index == 1 else "steady_steps"
        given = {"function": "step", "function_id": 1, **attrs}
        return self.span("step", start, duration, phase=phase, index=index, mode=mode, **given)

    def loop(
        self,
        call: str,
        seconds: list[float],
        *,
        site: str = "train.py:7",
        rss: float = 0,
        threads: float = 0,
        graph_ops: float = 0,
        adders: dict[str, int] | None = None,
    ) -> Loop:
        """Add a loop whose memory, threads and operations rise by the given amounts a round."""
        at, rounds = 1.0, []
        for index, duration in enumerate(seconds):
            rounds.append(
                Round(
                    ns(at),
                    ns(duration),
                    (500 << 20) + round(index * rss),
                    round(5 + index * threads),
                    round(index * graph_ops),
                    0,
                )
            )
            at += duration
        slopes = {
            "ns_per_round": (ns(seconds[-1]) - ns(seconds[1])) / max(1, len(seconds) - 2),
            "rss_bytes_per_round": float(rss),
            "threads_per_round": float(threads),
            "graph_ops_per_round": float(graph_ops),
            "traces_per_round": 0.0,
        }
        made = Loop(site, "main", call, PID, tuple(rounds), slopes, adders or {})
        self.loops.append(made)
        return made

    def process(self, pid: int, start: float, duration: float, **attrs: Any) -> Process:
        made = Process(pid, PID, ("python", "worker.py"), "exec", ns(start), ns(start + duration), 0, True, attrs)
        self.processes.append(made)
        return made

    def profile(self) -> Profile:
        end_ns = max(
            [span.end_ns for span in self.spans]
            + [loop.rounds[-1].start_ns + loop.rounds[-1].duration_ns for loop in self.loops]
            + [process.end_ns for process in self.processes]
            + [0]
        )
        root = Process(PID, 1, ("python", *self.command), "root", 0, end_ns, self.exit_code, True)
        return Profile(
            command=self.command,
            exit_code=self.exit_code,
            wall_ns=end_ns,
            environment=self.environment,
            spans=tuple(sorted(self.spans, key=lambda span: span.start_ns)),
            phases={**dict.fromkeys(PHASES, 0), **{name: ns(took) for name, took in self.phases.items()}},
            processes=(root, *self.processes),
            loops=tuple(self.loops),
        )

    def matches(self, rule: str) -> list[Match]:
        """Run one rule over what was made so far."""
        return list(importlib.import_module(f"glowplug.advise.rules.{rule}").find(View(self.profile())))

    def match(self, rule: str) -> Match:
        """Run one rule and check that it found exactly one thing, and what every match must have."""
        matches = self.matches(rule)
        assert len(matches) == 1, [each.title for each in matches]
        match = matches[0]
        assert match.title
        assert match.evidence
        assert match.remedy.text
        assert match.remedy.code or match.remedy.command
        if match.remedy.command:  # a command that does not exist leaves through SystemExit
            words = shlex.split(match.remedy.command)[1:]
            build_parser(words).parse_args(words)
        return match


@pytest.fixture
def make() -> Maker:
    return Maker()


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parents[2]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that asks for `rule_id` one run for each rule."""
    if "rule_id" in metafunc.fixturenames and not metafunc.definition.get_closest_marker("parametrize"):
        metafunc.parametrize("rule_id", [rule.id for rule in all_rules()])
