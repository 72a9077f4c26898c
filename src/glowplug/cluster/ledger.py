"""What is deployed in a cluster, and what was before: kept with the cluster's own state, for as long as it runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .settings import Generation, ReplicaSettings

_SPACE = b"glowplug"
_PREFIX = b"application:"


@dataclass(frozen=True, slots=True)
class Record:
    """One application as it was deployed. `options` are Ray Serve's."""

    generation: Generation
    settings: ReplicaSettings
    replicas: int | None = None
    autoscaling: Mapping[str, Any] | None = None
    route_prefix: str = "/"
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the values as JSON takes them."""
        document = {name: value for name, value in asdict(self).items() if name not in ("generation", "settings")}
        return {**document, "generation": self.generation.to_json(), "settings": self.settings.to_json()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Record:
        """Return what `to_json` wrote."""
        parsed = {
            "generation": Generation.from_json(document["generation"]),
            "settings": ReplicaSettings.from_json(document["settings"]),
        }
        return cls(**{**document, **parsed})


def read(application: str) -> list[Record]:
    """Return what an application was, the newest last; nothing where there is no such application."""
    data = _kv()._internal_kv_get(_PREFIX + application.encode(), namespace=_SPACE)
    return [Record.from_json(one) for one in json.loads(data)] if data else []


def write(application: str, records: list[Record]) -> None:
    """Keep what an application is and was before; with no records it is forgotten."""
    key = _PREFIX + application.encode()
    if records:
        data = json.dumps([one.to_json() for one in records]).encode()
        _kv()._internal_kv_put(key, data, overwrite=True, namespace=_SPACE)
    else:
        _kv()._internal_kv_del(key, namespace=_SPACE)


def applications() -> list[str]:
    """Return the names of all applications."""
    keys = _kv()._internal_kv_list(_PREFIX, namespace=_SPACE)
    return sorted(key.removeprefix(_PREFIX).decode() for key in keys)


def _kv() -> Any:
    from ray.experimental import internal_kv

    return internal_kv
