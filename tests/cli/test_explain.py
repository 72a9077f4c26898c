"""`glowplug explain`: pages of rules, from the package."""

from __future__ import annotations

import json

import pytest

from glowplug.advise.engine import all_rules, read_page


@pytest.mark.parametrize("rule", [rule.id for rule in all_rules()])
def test_every_rule_has_its_page_in_the_package(rule, call):
    code, out, err = call("explain", rule)
    assert (code, err) == (0, "")
    assert out.startswith(f"# `{rule}`\n")
    assert "## Remedy" in out
    assert "](" not in out.replace("](http", ""), "a link that leads nowhere in a terminal"


def test_without_a_rule_all_are_listed(call):
    code, out, _ = call("explain")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [rule.id for rule in all_rules()]


def test_as_json(call):
    code, out, _ = call("explain", "constant_in_graph", "--json")
    assert code == 0
    assert json.loads(out)["page"] == read_page("constant_in_graph")


def test_a_misspelt_rule_is_one_line(call):
    code, out, err = call("explain", "constant_in_graf")
    assert (code, out) == (2, "")
    assert err == "glowplug: there is no such rule: constant_in_graf; did you mean constant_in_graph?\n"
