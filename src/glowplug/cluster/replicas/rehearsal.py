"""Tries a model on a node before anything is switched: loads and warms it as a replica would, then lets it go."""

from __future__ import annotations

from typing import Any

from glowplug.cluster.settings import Generation, ReplicaSettings

from .hosted import HostedWorkers
from .models import ReplicaModels


async def rehearse(generation: dict[str, Any], settings: dict[str, Any]) -> None:
    """Load and warm every model of a generation on this node; raises where one cannot be. Runs in an agent."""
    workers = HostedWorkers(standby=bool(settings.get("standby", True)))
    models = ReplicaModels(ReplicaSettings.from_json({**settings, "resident": 0}), workers)
    try:
        await models.adopt(Generation.from_json(generation))
    finally:
        await models.close()
        workers.close()
