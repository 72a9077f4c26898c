"""How each phase is shown: the label people read and the colour that stands for it everywhere.

The colours share one lightness, so that dark text is legible on all of them and no phase shouts; related phases are
neighbours in hue (imports blue, building green, weights amber, graph work violet, steps red).
"""

from __future__ import annotations

from dataclasses import dataclass

from glowplug.core.profile import PHASES


@dataclass(frozen=True, slots=True)
class PhaseStyle:
    """The label and the colour (`#rrggbb`) of one phase."""

    name: str
    label: str
    color: str


_STYLES = {
    "interpreter": ("interpreter", "#a3b1c6"),
    "import": ("import", "#7fb2f0"),
    "library_load": ("library load", "#8f9ff0"),
    "runtime_init": ("runtime init", "#6cc5c9"),
    "build": ("build", "#7ecb94"),
    "initializers": ("initializers", "#b2cf72"),
    "weights_read": ("weights: read", "#f0c674"),
    "weights_decode": ("weights: decode", "#e6ad5c"),
    "weights_assign": ("weights: assign", "#d8995c"),
    "session": ("session", "#5fc3a9"),
    "trace": ("trace", "#b79af0"),
    "graph_optimization": ("graph optimization", "#d295e4"),
    "xla": ("xla", "#ec96c8"),
    "optimizer_setup": ("optimizer set-up", "#c9a58c"),
    "first_step": ("first step", "#f28e82"),
    "steady_steps": ("steady steps", "#f2b2a4"),
    "io_wait": ("waiting", "#d9d16a"),
    "user_code": ("user code", "#bcc2c4"),
    "exit": ("exit", "#8fa3b8"),
    "unaccounted": ("unaccounted", "#d9d9d9"),
}

PHASE_STYLES: tuple[PhaseStyle, ...] = tuple(PhaseStyle(name, *_STYLES[name]) for name in PHASES)


def phase_style(name: str) -> PhaseStyle:
    """Return how a phase is shown; a phase of a later release gets its own name and a neutral colour."""
    label, color = _STYLES.get(name, (name.replace("_", " "), "#bcc2c4"))
    return PhaseStyle(name, label, color)
