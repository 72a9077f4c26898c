"""What the page shows, as JSON: models and their versions, the last minutes as numbers, the last errors.

It is made at most once a second however many look, and it is bounded however much there is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import orjson

from glowplug.core.version import VERSION
from glowplug.serve.metrics.history import History
from glowplug.serve.metrics.registry import Metrics
from glowplug.serve.models.catalog import Catalog, Model
from glowplug.serve.models.versions import State, Version

MAX_MODELS, MAX_VERSIONS = 100, 10
_MAX_TEXT = 500
_KEPT_SECONDS = 1.0


class LiveDocument:
    """The document as bytes."""

    def __init__(self, catalog: Catalog, metrics: Metrics, history: History, is_ready: Callable[[], bool]) -> None:
        self._catalog, self._metrics, self._history, self._is_ready = catalog, metrics, history, is_ready
        self._started = time.monotonic()
        self._made, self._made_at = b"", -math.inf

    def read(self) -> bytes:
        """Return what there is to show now."""
        now = time.monotonic()
        if now - self._made_at > _KEPT_SECONDS:
            self._made, self._made_at = orjson.dumps(self._make(now)), now
        return self._made

    def _make(self, now: float) -> dict[str, Any]:
        models = sorted(self._catalog.models.items())
        requests, errors = self._metrics.totals()
        return {
            "glowplug": VERSION,
            "now": time.time(),
            "up_s": round(now - self._started, 1),
            "ready": self._is_ready(),
            "requests": requests,
            "errors": errors,
            "models": [self._model(name, model) for name, model in models[:MAX_MODELS]],
            "more_models": max(0, len(models) - MAX_MODELS),
            "series": self._history.series(),
            "trouble": self._metrics.trouble.newest(),
        }

    def _model(self, name: str, model: Model) -> dict[str, Any]:
        """Describe a model: versions that do something first, then the newest."""
        versions = sorted(model.versions.values(), key=lambda one: (one.state is State.END, -one.number))
        return {
            "name": name.encode(errors="replace").decode(),
            "expected": model.expected,
            "trouble": model.trouble[:_MAX_TEXT].encode(errors="replace").decode(),
            "versions": [self._version(model, version) for version in versions[:MAX_VERSIONS]],
            "more_versions": max(0, len(versions) - MAX_VERSIONS),
        }

    def _version(self, model: Model, version: Version) -> dict[str, Any]:
        described = version.describe()
        shown: dict[str, Any] = {
            "number": version.number,
            "labels": sorted(label for label, number in model.config.labels.items() if number == version.number),
            "state": version.state.name,
            "engine": version.engine,
            "rate": self._history.rate(version.model, version.number),
            "bytes": self._history.memory.get((version.model, version.number), 0),
            "waiting": 0 if version.group is None else version.group.waiting,
        }
        for name in ("workers", "workers_ready", "workers_wanted", "elapsed_s", "eta_s", "restarts", "ready_after_s"):
            if name in described:
                shown[name] = described[name]
        for name in ("error", "problem", "waiting_for"):
            if described.get(name):
                shown[name] = str(described[name])[:_MAX_TEXT].encode(errors="replace").decode()
        return shown
