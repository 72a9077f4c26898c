"""The engine: discovery, ranking, and what a finding carries."""

from __future__ import annotations

import os
import subprocess
import sys

from glowplug.advise.engine import Rule, advise, all_rules, with_findings
from glowplug.advise.match import Match
from glowplug.core.profile import Remedy

SPAN_KINDS = """
start exit process fork main thread module library context model layer clear_session constant saver
variables_initializer load saved_model_objects saved_model_functions variable read decode assign session
session_close initialize trace graph_optimization pass instantiate xla_compile compile optimizer_build step
steps fit data io graph_ops
"""


def a_rule(name, *savings):
    def find(view):
        for ns, size in savings:
            yield Match(f"{name} {ns}", {"n": ns}, Remedy("do"), saves_ns=ns, saves_bytes=size)

    return Rule(name, "symptom", find)


def test_discovers_rules_by_file_name():
    names = [rule.id for rule in all_rules()]
    assert names == sorted(names)
    assert "two_traces_on_first_step" in names
    assert len(names) >= 24


def test_ranks_by_seconds_then_bytes_then_name(make):
    rules = [a_rule("b", (1, 0), (0, 5)), a_rule("a", (7, 0), (0, 9), (0, 5))]
    found = advise(make.profile(), rules)
    assert [(f.rule, f.saves_ns, f.saves_bytes) for f in found] == [
        ("a", 7, 0),
        ("b", 1, 0),
        ("a", 0, 9),
        ("a", 0, 5),
        ("b", 0, 5),
    ]


def test_adds_the_rule_and_its_page(make):
    (found,) = advise(make.profile(), [a_rule("slow", (3, 0))])
    assert found.rule == "slow"
    assert found.remedy.doc == "reference/rules/slow.md"
    assert found.remedy.text == "do"


def test_with_findings_keeps_the_rest(make):
    make.span("fork", 1, 0, runtime_ready=True)
    profile = make.profile()
    judged = with_findings(profile)
    assert [each.rule for each in judged.findings] == ["fork_after_runtime_start"]
    assert judged.spans == profile.spans
    assert profile.findings == ()


def test_is_silent_on_an_empty_profile(make):
    assert advise(make.profile()) == ()


def test_needs_only_core(repository):
    code = (
        "import sys; from glowplug.advise.engine import all_rules; all_rules();"
        "print([m for m in sys.modules if m.split('.')[0] in ('tensorflow', 'keras', 'numpy', 'rich')"
        " or m.startswith('glowplug.') and m.split('.')[1] not in ('advise', 'core')])"
    )
    environment = {**os.environ, "PYTHONPATH": str(repository / "src")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_rule_survives_missing_attributes(make):
    """An attribute that could not be observed is absent; no rule may depend on an optional one."""
    kinds = SPAN_KINDS.split()
    outer = None
    for index, kind in enumerate(kinds):
        made = make.span(kind, index, 10)
        outer = make.span("load", index, 30) if kind == "load" else outer
        make.span(kind, index, 5, within=made)
        if outer:
            make.span(kind, index, 5, within=outer)
    for call in ("Session", "variables_initializer", "saver", "model", "load", "step", "session_run"):
        make.loop(call, [1, 1, 2, 3, 4, 5, 6], rss=5e6, threads=2, graph_ops=9)
    make.environment = {}
    advise(make.profile())
