"""Run every rule over a profile and rank what they find.

A rule is a module of `glowplug.advise.rules`, named for its symptom, with a `SYMPTOM` line and a function
`find(view) -> Iterator[Match]`. Adding the file adds the rule.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files

from glowplug.core.profile import Finding, Profile

from .match import Match
from .view import View


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its id (the module's name), the symptom in one line, and how to look for it."""

    id: str
    symptom: str
    find: Callable[[View], Iterator[Match]]

    @property
    def doc(self) -> str:
        """The rule's page, as a path under `docs/`."""
        return f"reference/rules/{self.id}.md"


def all_rules() -> tuple[Rule, ...]:
    """Return every rule, in order of name."""
    from . import rules

    names = sorted(found.name for found in pkgutil.iter_modules(rules.__path__))
    modules = [importlib.import_module(f"{rules.__name__}.{name}") for name in names]
    return tuple(Rule(name, module.SYMPTOM, module.find) for name, module in zip(names, modules, strict=True))


def advise(profile: Profile, rules: Iterable[Rule] | None = None) -> tuple[Finding, ...]:
    """Return what the rules find in a profile: the most seconds first, then the most bytes.

    The savings of two findings can be the same seconds seen from two sides; they do not add up.
    """
    view = View(profile)
    chosen = all_rules() if rules is None else rules
    found = [_complete(rule, match) for rule in chosen for match in rule.find(view)]
    return tuple(sorted(found, key=lambda each: (-each.saves_ns, -each.saves_bytes, each.rule)))


def read_page(rule_id: str) -> str:
    """Return a rule's page, as Markdown. The package has a copy, which works without a network."""
    return files("glowplug.advise").joinpath("pages", f"{rule_id}.md").read_text(encoding="utf-8")


def with_findings(profile: Profile) -> Profile:
    """Return the profile with the findings of every rule."""
    return replace(profile, findings=advise(profile))


def _complete(rule: Rule, match: Match) -> Finding:
    return Finding(
        rule=rule.id,
        title=match.title,
        evidence=match.evidence,
        saves_ns=match.saves_ns,
        remedy=replace(match.remedy, doc=rule.doc),
        saves_bytes=match.saves_bytes,
        spans=match.spans,
    )
