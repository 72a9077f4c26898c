"""What the Open Inference Protocol tells about the server and its models, whichever transport asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from glowplug.core.errors import RequestError
from glowplug.core.manifest import Port
from glowplug.core.version import VERSION
from glowplug.serve.models.catalog import Catalog
from glowplug.serve.wire.calls import DEFAULT_SIGNATURE, ModelReference
from glowplug.serve.wire.v2_tensor import datatype_of

SERVER = ("glowplug", VERSION)
EXTENSIONS = ("binary_tensor_data",)
PLATFORM = "tensorflow_savedmodel"
_MAX_VERSION, _MAX_DIGITS = (1 << 63) - 1, 19


@dataclass(frozen=True, slots=True)
class TensorDescription:
    """One input or output. A dimension of any size is -1, and so is the one dimension of a tensor of any rank."""

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """A model, by its default signature, and the names of all of them."""

    name: str
    versions: tuple[str, ...]
    inputs: tuple[TensorDescription, ...]
    outputs: tuple[TensorDescription, ...]
    signatures: tuple[str, ...]


def reference(name: str, version: str) -> ModelReference:
    """Return which model is meant. Versions are text in this protocol: a number, a label, or nothing for the newest."""
    if not name:
        raise RequestError("the request names no model")
    if not version:
        return ModelReference(name)
    if not (version.isascii() and version.isdigit()):
        return ModelReference(name, label=version)
    if len(version) > _MAX_DIGITS or int(version) > _MAX_VERSION:
        raise RequestError("there is no such version", seen=version[:40], code="NOT_FOUND")
    return ModelReference(name, int(version))


def describe(catalog: Catalog, target: ModelReference) -> ModelDescription:
    """Return the description of a version that answers."""
    _, group = catalog.group(target)
    signatures = group.signatures
    chosen = signatures.get(DEFAULT_SIGNATURE) or next(iter(signatures.values()), None)
    numbers = sorted(version.number for version in catalog.models[target.name].available())
    return ModelDescription(
        target.name,
        tuple(map(str, numbers)),
        _tensors(chosen.inputs) if chosen else (),
        _tensors(chosen.outputs) if chosen else (),
        tuple(signatures),
    )


def _tensors(ports: Mapping[str, Port]) -> tuple[TensorDescription, ...]:
    return tuple(
        TensorDescription(
            name,
            datatype_of(port.spec.dtype),
            (-1,) if port.spec.shape is None else tuple(-1 if size is None else size for size in port.spec.shape),
        )
        for name, port in ports.items()
    )


def is_ready(catalog: Catalog, target: ModelReference) -> bool:
    """Say whether a model, or a version of it, can answer; raises where there is none of that name."""
    catalog.statuses(target)
    try:
        return catalog.group(target)[1].ready
    except RequestError:
        return False
