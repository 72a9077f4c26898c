"""One call of a model, whichever protocol it came by, and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from glowplug.core.errors import RequestError
from glowplug.core.manifest import Signature

from .array_types import dtype_name

DEFAULT_SIGNATURE = "serving_default"

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class ModelReference:
    """Which model is meant: by number, by label, or the newest one where both are missing."""

    name: str
    version: int | None = None
    label: str | None = None


def find_signature(signatures: Mapping[str, Signature], name: str) -> tuple[str, Signature]:
    """Return a signature by name; an empty name is the default one."""
    chosen = name or DEFAULT_SIGNATURE
    try:
        return chosen, signatures[chosen]
    except KeyError:
        raise RequestError(
            f'Serving signature name: "{chosen}" not found in signature def',
            seen=f"it has {', '.join(map(repr, signatures)) or 'none'}",
        ) from None


def check_inputs(name: str, signature: Signature, inputs: Arrays) -> None:
    """Refuse inputs of other names, dtypes or ranks than the signature takes, before anything is run.

    Sizes of dimensions are left to TensorFlow: it takes some that the signature does not declare.
    """
    unknown, missing = set(inputs) - set(signature.inputs), set(signature.inputs) - set(inputs)
    if unknown or missing:
        raise RequestError(
            f"the inputs do not fit signature {name!r}",
            seen=f"unexpected {sorted(unknown)}, missing {sorted(missing)}",
            remedy=f"it takes {', '.join(f'{key}: {port.spec}' for key, port in signature.inputs.items())}",
        )
    for key, port in signature.inputs.items():
        array, spec = inputs[key], port.spec
        seen = dtype_name(array)
        if seen != spec.dtype:
            raise RequestError(f"input {key!r} must be {spec}", seen=f"got {seen}{list(array.shape)}")


def choose_outputs(signature: Signature, wanted: list[str]) -> list[str]:
    """Return the outputs to answer with: those of the filter, or all."""
    for name in wanted:
        if name not in signature.outputs:
            raise RequestError(
                "output tensor alias not found in signature",
                seen=name,
                remedy=f"it has {', '.join(signature.outputs)}",
            )
        if wanted.count(name) > 1:
            raise RequestError("duplicate output tensor alias", seen=name)
    return list(wanted) or list(signature.outputs)
