"""The parts of a manifest, each read from JSON that nothing is known about yet.

`schema` opens the envelope and hands its content to `parse_manifest`. Every value comes out typed, bounded
and consistent with the others, or the error that says what is wrong is raised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from glowplug.core.dtypes import BY_NAME
from glowplug.core.errors import (
    MissingFileError,
    TensorMisalignedError,
    TensorOutOfBoundsError,
    TensorOverlapError,
    TensorSizeError,
    UnknownDtypeError,
)
from glowplug.core.manifest import (
    ENGINES,
    INTERFACES,
    Asset,
    FileEntry,
    Fingerprint,
    InitStep,
    LiteRTSettings,
    Manifest,
    PackedWeights,
    Port,
    Signature,
    StoredTensor,
    StoredVariable,
    TensorSpec,
)

from . import layout
from .fields import (
    MAX_INTEGER,
    MAX_TEXT_CHARS,
    REMEDY,
    array,
    free_object,
    integer,
    mapping,
    record,
    refuse,
    table,
    text,
)

MAX_RANK = 254  # TensorFlow's own limit
MAX_OUTPUT_INDEX = 2**31 - 1

_MANIFEST = frozenset(Manifest.__match_args__) - {"variables", "litert", "measured"}
_SIGNATURE = frozenset(Signature.__match_args__) - {"method"}
_PORT = frozenset({"name", "dtype", "shape", "tensor"})
_TENSOR = frozenset(StoredTensor.__match_args__)
_VARIABLE = frozenset(StoredVariable.__match_args__)
_ASSET = frozenset(Asset.__match_args__)
_STEP = frozenset(InitStep.__match_args__)
_FILE = frozenset(FileEntry.__match_args__)
_FINGERPRINT = frozenset(Fingerprint.__match_args__)
_LITERT = frozenset(LiteRTSettings.__match_args__) - {"largest"}
MAX_MAGNITUDE = 1e300
_PACKED = frozenset(PackedWeights.__match_args__)

_NODE = r"[A-Za-z0-9_.>][A-Za-z0-9_.>/\\-]*"
_OUTPUT_INDEX = r"0|[1-9][0-9]{0,9}"
_DIGEST = r"[0-9a-f]{64}"
_PACKAGE = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"

# What an engine runs; a bundle without it could not be loaded.
_ENGINE_FILE = {"native": layout.GRAPH, "litert": layout.TFLITE}


def parse_manifest(value: Any) -> Manifest:
    """Return the manifest that the `manifest` field of a `bundle.json` holds."""
    body = record(value, "manifest", _MANIFEST, "variables", "litert", "measured")
    engine = body["engine"]
    if engine not in ENGINES:
        refuse("engine", f"one of {', '.join(ENGINES)}", engine)
    files = _parse_files(body["files"])
    _check_engine_file(engine, files)
    tensors = _parse_tensors(body["tensors"], files.get(layout.WEIGHTS))
    return Manifest(
        engine=engine,
        signatures={
            name: _parse_signature(one, f"signatures.{name}", tensors)
            for name, one in mapping(body["signatures"], "signatures").items()
        },
        files=files,
        tensors=tensors,
        variables=_parse_variables(body.get("variables", []), tensors),
        assets=_parse_assets(body["assets"], files),
        initializers=tuple(
            _parse_step(one, f"initializers[{i}]", tensors)
            for i, one in enumerate(array(body["initializers"], "initializers"))
        ),
        op_libraries=tuple(
            _parse_package(one, f"op_libraries[{i}]")
            for i, one in enumerate(array(body["op_libraries"], "op_libraries"))
        ),
        fingerprint=_parse_fingerprint(body["fingerprint"]),
        provenance=free_object(body["provenance"], "provenance"),
        equivalence=free_object(body["equivalence"], "equivalence"),
        litert=_parse_litert(body.get("litert"), engine),
        measured=free_object(body.get("measured", {}), "measured"),
    )


def _parse_files(value: Any) -> dict[str, FileEntry]:
    files = {}
    for path, one in table(value, "files").items():
        where = f"files.{layout.check_path(path, 'files')}"
        if path == layout.MANIFEST:
            refuse("files", "every file but the manifest itself", path)
        entry = record(one, where, _FILE)
        files[path] = FileEntry(
            size=integer(entry["size"], f"{where}.size"), sha256=_parse_digest(entry["sha256"], f"{where}.sha256")
        )
    return files


def _parse_digest(value: Any, where: str) -> str:
    if type(value) is not str or not re.fullmatch(_DIGEST, value):
        refuse(where, "64 lower-case hexadecimal digits", value)
    return value


def _check_engine_file(engine: str, files: Mapping[str, FileEntry]) -> None:
    needed = _ENGINE_FILE.get(engine)
    if needed is None:
        if not any(path.startswith(layout.SAVED_MODEL) for path in files):
            refuse("files", f"files below {layout.SAVED_MODEL} for the savedmodel engine", "none")
    elif needed not in files:
        refuse("files", f"{needed}, which the {engine} engine needs", "none")


def _parse_tensors(value: Any, weights: FileEntry | None) -> tuple[StoredTensor, ...]:
    rows = array(value, "tensors")
    if rows and weights is None:
        refuse("files", f"{layout.WEIGHTS}, since there are tensors", "none")
    size = weights.size if weights else 0
    tensors: list[StoredTensor] = []
    nodes: set[str] = set()
    previous_offset = end = 0
    for i, row in enumerate(rows):
        where = f"tensors[{i}]"
        one = record(row, where, _TENSOR)
        node = _parse_node(one["node"], where) if one["node"] != "" else ""
        shape = _parse_dims(one["shape"], where)
        offset = integer(one["offset"], where)
        nbytes = integer(one["nbytes"], where)
        dtype = BY_NAME.get(one["dtype"]) if type(one["dtype"]) is str else None
        if dtype is None or not dtype.itemsize:
            raise UnknownDtypeError(
                f"the dtype at {where} cannot be stored", seen=ascii(one["dtype"])[:100], remedy=REMEDY
            )
        if nbytes != dtype.itemsize * prod(shape):
            raise TensorSizeError(
                f"the byte count at {where} does not follow from its dtype and shape",
                seen=f"{nbytes} for {dtype.name}{list(shape)}",
                remedy=REMEDY,
            )
        if offset % layout.ALIGNMENT:
            raise TensorMisalignedError(
                f"{where} does not start at a multiple of {layout.ALIGNMENT}", seen=offset, remedy=REMEDY
            )
        if offset < previous_offset:
            refuse(f"{where}.offset", "tensors in the order of their offsets", offset)
        if offset < end:
            raise TensorOverlapError(f"{where} overlaps the tensor before it", seen=f"{offset} < {end}", remedy=REMEDY)
        previous_offset, end = offset, offset + nbytes
        if end > size:
            raise TensorOutOfBoundsError(
                f"{where} reaches past the end of {layout.WEIGHTS}", seen=f"{end} > {size}", remedy=REMEDY
            )
        if node in nodes:
            refuse(f"{where}.node", "a node that no other tensor is fed to", node)
        if node:
            nodes.add(node)
        name = text(one["name"], where, empty=True)
        tensors.append(StoredTensor(node, name, dtype.name, shape, offset, nbytes))
    return tuple(tensors)


def _parse_variables(value: Any, tensors: Sequence[StoredTensor]) -> tuple[StoredVariable, ...]:
    variables = []
    for i, row in enumerate(array(value, "variables")):
        where = f"variables[{i}]"
        one = record(row, where, _VARIABLE)
        shape = _parse_dims(one["shape"], where)
        index = integer(one["tensor"], f"{where}.tensor", len(tensors) - 1)
        if prod(shape) != prod(tensors[index].shape):
            raise TensorSizeError(
                f"the shape at {where} does not have as many elements as its tensor",
                seen=f"{list(shape)} for {list(tensors[index].shape)}",
                remedy=REMEDY,
            )
        variables.append(StoredVariable(text(one["name"], f"{where}.name"), shape, index))
    return tuple(variables)


def _parse_dims(value: Any, where: str) -> tuple[int, ...]:
    dims = array(value, f"{where}.shape")
    if len(dims) > MAX_RANK:
        refuse(f"{where}.shape", f"at most {MAX_RANK} dimensions", len(dims))
    for dim in dims:
        if type(dim) is not int or not 0 <= dim <= MAX_INTEGER:
            refuse(f"{where}.shape", f"integers from 0 to {MAX_INTEGER}", dim)
    return tuple(dims)


def _parse_spec(dtype: Any, shape: Any, where: str) -> TensorSpec:
    if type(dtype) is not str or dtype not in BY_NAME:
        raise UnknownDtypeError(f"the dtype at {where} is unknown", seen=ascii(dtype)[:100], remedy=REMEDY)
    if shape is None:
        return TensorSpec(dtype, None)
    known = _parse_dims([0 if dim is None else dim for dim in array(shape, f"{where}.shape")], where)
    return TensorSpec(dtype, tuple(None if dim is None else n for dim, n in zip(shape, known, strict=True)))


def _parse_ports(value: Any, where: str) -> dict[str, Port]:
    ports: dict[str, Port] = {}
    for i, row in enumerate(array(value, where)):
        here = f"{where}[{i}]"
        one = record(row, here, _PORT)
        name = text(one["name"], f"{here}.name")
        if name in ports:
            refuse(f"{here}.name", "each name once", name)
        tensor = text(one["tensor"], f"{here}.tensor")
        node, _, index = tensor.rpartition(":")
        if not (re.fullmatch(_NODE, node) and re.fullmatch(_OUTPUT_INDEX, index) and int(index) <= MAX_OUTPUT_INDEX):
            refuse(f"{here}.tensor", "a graph tensor, `node:index`", tensor)
        ports[name] = Port(_parse_spec(one["dtype"], one["shape"], here), tensor)
    return ports


def _parse_signature(value: Any, where: str, tensors: Sequence[StoredTensor]) -> Signature:
    one = record(value, where, _SIGNATURE, "method")
    return Signature(
        inputs=_parse_ports(one["inputs"], f"{where}.inputs"),
        outputs=_parse_ports(one["outputs"], f"{where}.outputs"),
        weights=_parse_weights(one["weights"], where, tensors),
        targets=_parse_nodes(one["targets"], f"{where}.targets"),
        method=text(one["method"], f"{where}.method") if "method" in one else "",
    )


def _parse_step(value: Any, where: str, tensors: Sequence[StoredTensor]) -> InitStep:
    one = record(value, where, _STEP)
    return InitStep(
        targets=_parse_nodes(one["targets"], f"{where}.targets"),
        weights=_parse_weights(one["weights"], where, tensors),
    )


def _parse_weights(value: Any, where: str, tensors: Sequence[StoredTensor]) -> tuple[int, ...]:
    where = f"{where}.weights"
    indices = array(value, where)
    for index in indices:
        integer(index, where, len(tensors) - 1)
        if not tensors[index].node:
            refuse(where, "tensors that a node takes", index)
    if len(set(indices)) != len(indices):
        refuse(where, "each index once", "a repeated one")
    return tuple(indices)


def _parse_nodes(value: Any, where: str) -> tuple[str, ...]:
    return tuple(_parse_node(node, where) for node in array(value, where))


def _parse_node(value: Any, where: str) -> str:
    if type(value) is not str or len(value) > MAX_TEXT_CHARS or not re.fullmatch(_NODE, value):
        refuse(where, "the name of a graph node", value)
    return value


def _parse_assets(value: Any, files: Mapping[str, FileEntry]) -> tuple[Asset, ...]:
    assets = []
    for i, row in enumerate(array(value, "assets")):
        where = f"assets[{i}]"
        one = record(row, where, _ASSET)
        path = one["path"]
        if type(path) is not str:
            refuse(f"{where}.path", "a path", path)
        layout.check_path(path, where)
        if not path.startswith(layout.ASSETS):
            layout.refuse_path(path, where, f"an asset stands below {layout.ASSETS}")
        if path not in files:
            raise MissingFileError(f"the file of {where} is not among the bundle's files", seen=path, remedy=REMEDY)
        assets.append(Asset(_parse_node(one["node"], f"{where}.node"), path))
    if len({asset.node for asset in assets}) != len(assets):
        refuse("assets", "each node once", "a repeated one")
    return tuple(assets)


def _parse_package(value: Any, where: str) -> str:
    package = text(value, where)
    if not re.fullmatch(_PACKAGE, package):  # libraries come from installed packages, never from a path
        refuse(where, "the name of an installed Python package", package)
    return package


def _parse_fingerprint(value: Any) -> Fingerprint | None:
    if value is None:
        return None
    one = record(value, "fingerprint", _FINGERPRINT)
    environment = mapping(one["environment"], "fingerprint.environment")
    return Fingerprint(
        tensorflow=text(one["tensorflow"], "fingerprint.tensorflow"),
        cpu=tuple(text(item, "fingerprint.cpu") for item in array(one["cpu"], "fingerprint.cpu")),
        environment={key: text(item, "fingerprint.environment", empty=True) for key, item in environment.items()},
    )


def _parse_litert(value: Any, engine: str) -> LiteRTSettings | None:
    if (value is None) == (engine == "litert"):
        refuse("litert", "settings for the litert engine, and for no other", value)
    if value is None:
        return None
    one = record(value, "litert", _LITERT, "largest")
    if one["interface"] not in INTERFACES:
        refuse("litert.interface", f"one of {', '.join(INTERFACES)}", one["interface"])
    if type(one["any_shape"]) is not bool:
        refuse("litert.any_shape", "true or false", one["any_shape"])
    largest = one.get("largest")
    if largest is not None and (type(largest) not in (float, int) or not 0 < largest < MAX_MAGNITUDE):
        refuse("litert.largest", "a positive number", largest)
    packed = _parse_packed(one["packed"])
    return LiteRTSettings(one["interface"], one["any_shape"], packed, None if largest is None else float(largest))


def _parse_packed(value: Any) -> PackedWeights | None:
    if value is None:
        return None
    one = record(value, "litert.packed", _PACKED)
    return PackedWeights(
        machine=_parse_digest(one["machine"], "litert.packed.machine"),
        size=integer(one["size"], "litert.packed.size"),
        sha256=_parse_digest(one["sha256"], "litert.packed.sha256"),
    )
