"""The models that are being served, and how a request finds its version."""

from __future__ import annotations

from dataclasses import dataclass, field

from glowplug.core.errors import NotReadyError, RequestError
from glowplug.serve.wire.calls import ModelReference
from glowplug.serve.workers.group import Group

from .config import ModelConfig
from .versions import State, Version


@dataclass(slots=True, eq=False)
class Model:
    """A configured model and its versions by number, the ended ones among them.

    `expected` says that its versions lie at a URL, at which nobody has looked yet; `trouble`, why there are none.
    """

    config: ModelConfig
    versions: dict[int, Version] = field(default_factory=dict)
    expected: bool = False
    trouble: str = ""

    def available(self) -> list[Version]:
        """Return the versions that answer."""
        return [version for version in self.versions.values() if version.state is State.AVAILABLE]

    def newest(self) -> Version | None:
        """Return the newest version that answers."""
        return max(self.available(), key=lambda version: version.number, default=None)


class Catalog:
    """All models by name."""

    def __init__(self) -> None:
        self.models: dict[str, Model] = {}

    def find(self, target: ModelReference) -> Version:
        """Return the version that a request is for; raises `RequestError` where there is none that answers."""
        model = self.models.get(target.name)
        number = target.version
        if model is not None and target.label:
            number = model.config.labels.get(target.label)
            if number is None:
                raise RequestError(f"Unrecognized servable version label: {target.label}")
        if model is not None:
            if number is None:
                newest = model.newest()
                if newest is not None:
                    return newest
            else:
                found = model.versions.get(number)
                if found is not None and found.state is State.AVAILABLE:
                    return found
        wanted = f"Latest({target.name})" if number is None else f"Specific({target.name}, {number})"
        if model is not None and self._coming(model, number):
            raise NotReadyError(f"Servable not ready yet: {wanted}")
        raise RequestError(f"Servable not found for request: {wanted}", code="NOT_FOUND")

    @staticmethod
    def _coming(model: Model, number: int | None) -> bool:
        states = [v.state for v in model.versions.values() if number in (None, v.number)]
        return model.expected or any(state in (State.START, State.LOADING) for state in states)

    def group(self, target: ModelReference) -> tuple[Version, Group]:
        """Return the version and its workers."""
        version = self.find(target)
        assert version.group is not None
        return version, version.group

    def statuses(self, target: ModelReference) -> list[Version]:
        """Return the versions whose status was asked for, newest first."""
        model = self.models.get(target.name)
        number = target.version
        if model is not None and target.label:
            number = model.config.labels.get(target.label)
            if number is None:
                raise RequestError(f"Unrecognized servable version label: {target.label}")
        versions = [] if model is None else [v for v in model.versions.values() if number in (None, v.number)]
        if not versions:
            raise RequestError(
                f"Could not find any versions of model {target.name}"
                if number is None
                else f"Could not find version {number} of model {target.name}",
                code="NOT_FOUND",
            )
        return sorted(versions, key=lambda version: -version.number)

    def all_ready(self) -> bool:
        """Say whether every configured model has a version that answers, and a worker that lives."""
        return all(
            any(version.group is not None and version.group.ready for version in model.available())
            for model in self.models.values()
        )
