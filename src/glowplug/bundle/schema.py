"""`Manifest` to the bytes of `bundle.json` and back.

`parse` returns a manifest in which every value is typed, bounded and consistent with the others, or raises
the error that says what is wrong. It looks at no file: whether the bundle's files are as the manifest says is
`reader`'s part.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from glowplug.core.disk.digest import sha256
from glowplug.core.errors import DigestError, ManifestMalformedError, ManifestTooLargeError, NewerFormatError
from glowplug.core.manifest import FORMAT_VERSION, Fingerprint, Manifest, Port, Signature

from . import layout
from .fields import REMEDY, record, refuse
from .sections import parse_manifest

MAX_MANIFEST_BYTES = 64 << 20

_VERSION_KEY = "glowplug_bundle"
_ENVELOPE = frozenset({_VERSION_KEY, "sha256", "manifest"})
_HEAD = f'{{"{_VERSION_KEY}":{FORMAT_VERSION},"manifest":'.encode()
_TAIL = b',"sha256":"%s"}\n'


def dump(manifest: Manifest) -> bytes:
    """Return the bytes of `bundle.json`: one canonical line, the same for equal manifests."""
    body = {
        "engine": manifest.engine,
        "signatures": {name: _dump_signature(one) for name, one in manifest.signatures.items()},
        "files": {path: {"size": one.size, "sha256": one.sha256} for path, one in manifest.files.items()},
        "tensors": [
            {
                "node": one.node,
                "name": one.name,
                "dtype": one.dtype,
                "shape": list(one.shape),
                "offset": one.offset,
                "nbytes": one.nbytes,
            }
            for one in manifest.tensors
        ],
        "assets": [{"node": one.node, "path": one.path} for one in manifest.assets],
        "initializers": [{"targets": list(one.targets), "weights": list(one.weights)} for one in manifest.initializers],
        "op_libraries": list(manifest.op_libraries),
        "fingerprint": _dump_fingerprint(manifest.fingerprint),
        "provenance": dict(manifest.provenance),
        "equivalence": dict(manifest.equivalence),
    }
    if manifest.variables:
        body["variables"] = [
            {"name": one.name, "shape": list(one.shape), "tensor": one.tensor} for one in manifest.variables
        ]
    if manifest.litert is not None:
        from dataclasses import asdict

        settings = asdict(manifest.litert)
        body["litert"] = settings if settings["largest"] is not None else _without(settings, "largest")
    if manifest.measured:
        body["measured"] = dict(manifest.measured)
    data = canonical(body)
    return _HEAD + data + _TAIL % sha256(data).encode()


def _without(document: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != key}


def canonical(value: Any) -> bytes:
    """Return JSON with sorted keys, no blanks and only ASCII: one form for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def parse(data: bytes) -> Manifest:
    """Return the manifest that `data`, the content of a `bundle.json`, holds."""
    if len(data) > MAX_MANIFEST_BYTES:
        raise ManifestTooLargeError(
            f"the manifest is larger than {MAX_MANIFEST_BYTES} bytes",
            seen=f"{len(data)} bytes",
            remedy=REMEDY,
        )
    try:
        document = json.loads(
            data.decode("ascii"),
            object_pairs_hook=_object_without_duplicates,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as error:  # not ASCII, not JSON, a number or a nesting beyond reason
        raise ManifestMalformedError("the manifest is not JSON", seen=error, remedy=REMEDY) from None
    if type(document) is not dict:
        refuse("the top level", "an object", document)
    _check_version(document.get(_VERSION_KEY))  # first, since all else may have changed since
    record(document, "the top level", _ENVELOPE)
    _check_digest(data, document["sha256"])
    return parse_manifest(document["manifest"])


def _check_digest(data: bytes, written: Any) -> None:
    """Check the digest of the manifest's bytes as they stand; nothing around them may differ either."""
    tail = _TAIL % str(written).encode("ascii", "replace")
    if not (data.startswith(_HEAD) and data.endswith(tail)):
        refuse("the top level", f"{_HEAD.decode()}...{(_TAIL % b'...').decode().strip()}", data[:60])
    digest = sha256(memoryview(data)[len(_HEAD) : -len(tail)])
    if written != digest:
        raise DigestError(
            f"the digest of {layout.MANIFEST} does not match its content",
            seen=f"{ascii(written)[:80]} is written, {digest} is right",
            remedy=REMEDY,
        )


def _check_version(version: Any) -> None:
    if type(version) is not int or version < 1:
        refuse(_VERSION_KEY, "a format version from 1 on", version)
    if version > FORMAT_VERSION:
        raise NewerFormatError(
            "the bundle has a newer format than this Glowplug reads",
            seen=f"{version} > {FORMAT_VERSION}",
            remedy="upgrade: pip install -U glowplug",
        )


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        repeated, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        refuse("an object", "each key once", repeated)
    return value


def _refuse_constant(name: str) -> None:
    refuse("a number", "a finite number", name)


def _dump_signature(signature: Signature) -> dict[str, Any]:
    return {
        "inputs": _dump_ports(signature.inputs),
        "outputs": _dump_ports(signature.outputs),
        "weights": list(signature.weights),
        "targets": list(signature.targets),
        **({"method": signature.method} if signature.method else {}),
    }


def _dump_ports(ports: Mapping[str, Port]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "dtype": port.spec.dtype,
            "shape": None if port.spec.shape is None else list(port.spec.shape),
            "tensor": port.tensor,
        }
        for name, port in ports.items()
    ]


def _dump_fingerprint(fingerprint: Fingerprint | None) -> dict[str, Any] | None:
    if fingerprint is None:
        return None
    return {
        "tensorflow": fingerprint.tensorflow,
        "cpu": list(fingerprint.cpu),
        "environment": dict(fingerprint.environment),
    }
