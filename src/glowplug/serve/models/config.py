"""Which models to serve, from the command line or from TensorFlow Serving's `model_config_file`."""

from __future__ import annotations

import errno
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from glowplug.core.errors import UsageError
from glowplug.serve.wire.text_config import read_text

_NAME = re.compile(r"[^/:\s]{1,200}")
_NEVER_RIGHT = (errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)


@dataclass(frozen=True, slots=True)
class Policy:
    """Which versions to serve: the newest `count`, all, or those named."""

    kind: Literal["latest", "all", "specific"] = "latest"
    count: int = 1
    versions: tuple[int, ...] = ()

    def choose(self, found: list[int]) -> list[int]:
        """Return the versions to serve of those that are there, oldest first."""
        if self.kind == "latest":
            return sorted(found)[-self.count :]
        return sorted(found if self.kind == "all" else set(found) & set(self.versions))


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One model: where its versions lie (a path, or a URL), which to serve, and labels for some of them.

    `unused` are fields of TensorFlow Serving's that are given and change nothing here.
    """

    name: str
    base_path: Path
    policy: Policy = Policy()
    labels: Mapping[str, int] = field(default_factory=dict)
    url: str = ""
    unused: tuple[str, ...] = ()


def from_argument(text: str) -> ModelConfig:
    """Return the model that `NAME=PATH`, `NAME=URL` or one without a name means; then it is named for its last part."""
    name, separator, place = text.partition("=")
    if not separator or "://" in name:  # the sign is part of a URL
        name, place = _own_name(text), text
    return at(name, place)


def at(name: str, place: str, policy: Policy = Policy(), labels: Mapping[str, int] | None = None) -> ModelConfig:
    """Return a model whose versions lie at a path or a URL, or will.

    Raises `LocationError` for a URL that cannot be used, and `UsageError` for a path that can never be right.
    """
    from glowplug.store.location import FILE, is_url, parse

    if not is_url(place):
        return ModelConfig(check_name(name), _base_path(place), policy, labels or {})
    location = parse(place)
    if location.scheme == FILE:
        _base_path(str(location.path))
    return ModelConfig(check_name(name), Path(), policy, labels or {}, url=str(location))


def _base_path(place: str) -> Path:
    """Return a path that is a folder, or is not there yet."""
    path = Path(place)
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except ValueError:
        raise UsageError("a base path cannot have a zero byte in it", seen=repr(place)) from None
    except OSError as error:
        if error.errno not in _NEVER_RIGHT:
            return path
        raise UsageError("this can never be a base path", seen=f"{place[:200]} ({error.strerror})") from error
    if not is_folder:
        raise UsageError(
            "a base path is a folder", seen=path, remedy="name the folder with the model, or with its numbered versions"
        )
    return path


def _own_name(place: str) -> str:
    if "://" not in place:
        return Path(place).name.removesuffix(".glow")
    from glowplug.store.location import parse

    return parse(place).name.removesuffix(".glow")


def check_name(name: str) -> str:
    """Return a model's name if it can stand in a URL."""
    if not _NAME.fullmatch(name):
        raise UsageError("a model's name cannot have spaces, colons or slashes", seen=name, remedy="use NAME=PATH")
    return name


def read_config_file(path: Path) -> list[ModelConfig]:
    """Read `--model_config_file`."""
    return from_message(read_text(path, "ModelServerConfig"))


def read_changed_config_file(path: Path) -> list[ModelConfig]:
    """Read `--model_config_file` again. An empty one is being written, and does not mean that nothing is served."""
    config = read_text(path, "ModelServerConfig")
    if config.WhichOneof("config") is None:
        raise UsageError(
            "the configuration is empty", seen=path.name, remedy="to serve no model write `model_config_list {}`"
        )
    return from_message(config)


def from_message(config: Any) -> list[ModelConfig]:
    """Return the models of a `ModelServerConfig`."""
    if config.WhichOneof("config") == "custom_model_config":
        raise UsageError("custom_model_config is not supported", remedy="use model_config_list")
    models = dict[str, ModelConfig]()
    for entry in config.model_config_list.config:
        if entry.model_platform not in ("", "tensorflow"):
            raise UsageError("only TensorFlow models can be served", seen=entry.model_platform)
        if entry.name in models:
            raise UsageError("a model is configured twice", seen=entry.name)
        if not entry.base_path:
            raise UsageError("a model has no base_path", seen=entry.name, remedy="say where its versions are")
        model = at(entry.name, entry.base_path, _policy(entry), dict(entry.version_labels))
        models[entry.name] = replace(model, unused=("logging_config",) if entry.HasField("logging_config") else ())
    return list(models.values())


def _policy(entry: Any) -> Policy:
    choice = entry.model_version_policy
    kind = choice.WhichOneof("policy_choice")
    if kind == "all":
        return Policy("all")
    if kind == "specific":
        return Policy("specific", versions=tuple(choice.specific.versions))
    return Policy("latest", max(1, choice.latest.num_versions) if kind else 1)
