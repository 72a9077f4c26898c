"""`cluster.deployment`: a model, or several, as an application of Ray Serve's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from glowplug.core.disk.digest import sha256
from glowplug.core.errors import UsageError
from glowplug.core.version import VERSION
from glowplug.serve.models.config import check_name
from glowplug.store.location import parse

from .connection import require_ray
from .settings import Generation, ModelChoice, ReplicaSettings

DEPLOYMENT = "glowplug"
_ONGOING = 64  # calls that a replica takes at once: more than one, so that there is something to join


def deployment(
    models: str | Mapping[str, str],
    *,
    replicas: int | None = None,
    name: str | None = None,
    autoscaling: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Return an application for `ray.serve.run`: one URL, or several by the names that clients use.

    `replicas` is their number; `autoscaling` is Ray Serve's configuration for it, in its place. `settings` are those of
    `ReplicaSettings`: `batching`, `resident`, `trust` and so on. All other options are Ray Serve's own, as they are:
    `ray_actor_options`, `max_ongoing_requests`, `max_replicas_per_node`, `health_check_period_s` and so on.
    """
    return build(generation_of(models, name), ReplicaSettings.from_json(settings or {}), replicas, autoscaling, options)


def generation_of(models: str | Mapping[str, str], name: str | None = None, number: int = 1) -> Generation:
    """Return the generation that serves these URLs."""
    if isinstance(models, str):
        models = {name or _own_name(models): models}
    elif name is not None:
        raise UsageError("several models have names already", seen=f"name={name!r}")
    if not models:
        raise UsageError("there is no model to serve", remedy="pass a URL, or URLs by name")
    choices = []
    for one, url in models.items():
        location = parse(url)
        last = location.name
        version = int(last) if last.isascii() and last.isdigit() and len(last) < 19 else number
        choices.append(ModelChoice(check_name(one), str(location), version))
    return Generation(number, tuple(choices))


def build(
    generation: Generation,
    settings: ReplicaSettings,
    replicas: int | None,
    autoscaling: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Any:
    """Return the application of a generation."""
    require_ray()
    if replicas is not None and autoscaling is not None:
        raise UsageError("the number of replicas is either fixed or scaled", seen=f"replicas={replicas}")
    if replicas is not None and replicas < 1:
        raise UsageError("there must be at least one replica", seen=replicas)
    from ray import serve

    from .replicas.replica import Replica

    scaled = {"autoscaling_config": dict(autoscaling)} if autoscaling is not None else {"num_replicas": replicas or 1}
    chosen = {"name": DEPLOYMENT, "max_ongoing_requests": _ONGOING, **scaled, **options}
    chosen["user_config"] = generation.to_json()
    # Without a version of its own Ray Serve takes every deployment for new code, and replaces all replicas. What they
    # run is Glowplug with these settings; which models is the user_config, which changes in place.
    version = sha256(f"{VERSION} {json.dumps(settings.to_json(), sort_keys=True)}".encode())[:16]
    made = serve.deployment(Replica).options(**chosen).options(version=version, _internal=True)
    return made.bind(settings.to_json())


def _own_name(url: str) -> str:
    """Return the name of a model from its URL: the last part that is no version."""
    location = parse(url)
    parts = [part for part in location.url.split("/") if part]
    for part in reversed(parts):
        if not (part.isascii() and part.isdigit()):
            return part.removesuffix(".glow")
    return "model"
