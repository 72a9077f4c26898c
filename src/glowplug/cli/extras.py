"""The extras of the package: what each is for, and which of its packages are here, by its metadata."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from dataclasses import dataclass

# For people who have no TensorFlow, or work on Glowplug itself: `doctor` looks at TensorFlow by itself.
_LEFT_OUT = ("all", "cpu", "tf", "dev")
PURPOSES = {
    "hdfs": "bundles on HDFS",
    "litert": "the litert engine and .tflite models",
    "ray": "models on the nodes of a Ray cluster",
    "report": "profiles in colour and as HTML",
    "s3": "bundles on S3, Google Cloud Storage and Azure",
    "otel": "traces and metrics of `glowplug serve` for OpenTelemetry",
    "serve": "glowplug serve",
    "sign": "signatures",
    "store": "bundles on every storage, fsspec's too",
}


@dataclass(frozen=True, slots=True)
class Extra:
    """One extra, with its packages and their versions; None for one that is not installed."""

    name: str
    purpose: str
    packages: dict[str, str | None]

    @property
    def missing(self) -> list[str]:
        """The packages that are not installed."""
        return [name for name, version in self.packages.items() if version is None]


def all_extras() -> Iterator[Extra]:
    """Yield every extra that users choose; none where the package is not installed but run from its sources."""
    try:
        found = importlib.metadata.metadata("glowplug")
    except importlib.metadata.PackageNotFoundError:
        return
    requirements = found.get_all("Requires-Dist") or []
    for name in sorted(set(found.get_all("Provides-Extra") or []) - set(_LEFT_OUT)):
        packages = {package: installed_version(package) for package in _packages(requirements, name)}
        yield Extra(name, PURPOSES.get(name, "see the README"), packages)


def _packages(requirements: list[str], extra: str) -> Iterator[str]:
    for requirement in requirements:
        if not re.search(rf"""extra == ['"]{extra}['"]""", requirement):
            continue
        own = re.match(r"glowplug\[([\w,-]+)\]", requirement)
        if own:
            for name in own[1].split(","):
                yield from _packages(requirements, name)
        else:
            yield re.split(r"[\s<>=!~;\[(]", requirement, maxsplit=1)[0]


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
