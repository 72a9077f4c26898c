"""Programs under Python, under `glowplug run` and in standbys: with the fixtures of the layers that are joined here."""

from __future__ import annotations

from tests.imports.conftest import environment, faster, stock
from tests.standby.conftest import standby

__all__ = ["environment", "faster", "standby", "stock"]
