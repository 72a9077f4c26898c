"""Whatever can be written is read back the same: manifests, and tensors of every dtype and shape."""

from __future__ import annotations

import tempfile
from math import prod
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from glowplug.bundle import layout, schema
from glowplug.bundle.reader import open_bundle
from glowplug.bundle.verify import verify
from glowplug.bundle.writer import BundleWriter
from glowplug.core.dtypes import BY_NAME
from glowplug.core.manifest import (
    Asset,
    FileEntry,
    Fingerprint,
    InitStep,
    Manifest,
    Port,
    Signature,
    StoredTensor,
    StoredVariable,
    TensorSpec,
)

from .samples import graph, node

STORABLE = sorted(name for name, dtype in BY_NAME.items() if dtype.itemsize)

texts = st.text(min_size=1, max_size=20).filter(str.isprintable)
nodes = st.from_regex(r"\A[A-Za-z0-9_.][A-Za-z0-9_./-]{0,20}\Z")
ports = st.builds(
    Port,
    spec=st.builds(
        TensorSpec,
        dtype=st.sampled_from(sorted(BY_NAME)),
        shape=st.none() | st.lists(st.none() | st.integers(0, 2**62), max_size=5).map(tuple),
    ),
    tensor=st.builds("{}:{}".format, nodes, st.integers(0, 2**31 - 1)),
)
shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
entries = st.builds(FileEntry, size=st.integers(0, 2**40), sha256=st.from_regex(r"\A[0-9a-f]{64}\Z"))


@st.composite
def manifests(draw):
    tensors, offset = [], 0
    for name in draw(st.lists(nodes, unique=True, max_size=6)):
        dtype, shape = draw(st.sampled_from(STORABLE)), draw(shapes)
        nbytes = BY_NAME[dtype].itemsize * prod(shape)
        tensors.append(StoredTensor(name, draw(texts), dtype, shape, offset, nbytes))
        offset = layout.align(offset + nbytes) + 64 * draw(st.integers(0, 2))
    indices = st.lists(st.integers(0, len(tensors) - 1), unique=True).map(tuple) if tensors else st.just(())
    asset_paths = [f"assets/{i}.txt" for i in range(draw(st.integers(0, 2)))]
    return Manifest(
        engine="native",
        signatures=draw(
            st.dictionaries(
                texts,
                st.builds(
                    Signature,
                    inputs=st.dictionaries(texts, ports, max_size=3),
                    outputs=st.dictionaries(texts, ports, max_size=3),
                    weights=indices,
                    targets=st.lists(nodes, max_size=2).map(tuple),
                ),
                max_size=3,
            )
        ),
        files={
            "graph.pb": draw(entries),
            "weights.bin": FileEntry(offset, "0" * 64),
            **{path: draw(entries) for path in asset_paths},
        },
        tensors=tuple(tensors),
        variables=tuple(
            StoredVariable(draw(texts), tensors[index].shape[::-1], index)
            for index in (draw(indices) if tensors else ())
        ),
        assets=tuple(Asset(f"asset_{i}", path) for i, path in enumerate(asset_paths)),
        initializers=tuple(
            draw(st.lists(st.builds(InitStep, targets=st.just(("init",)), weights=indices), max_size=2))
        ),
        op_libraries=draw(st.sampled_from([(), ("tensorflow_text",), ("a.b", "c")])),
        fingerprint=draw(
            st.none()
            | st.builds(
                Fingerprint,
                tensorflow=texts,
                cpu=st.lists(texts, max_size=3).map(tuple),
                environment=st.dictionaries(texts, texts, max_size=2),
            )
        ),
        provenance=draw(st.dictionaries(texts, json_values, max_size=3)),
        equivalence=draw(st.dictionaries(texts, json_values, max_size=3)),
    )


@given(manifests())
def test_manifest_round_trip(manifest):
    data = schema.dump(manifest)
    read = schema.parse(data)
    assert read == manifest
    assert schema.dump(read) == data
    for name, signature in manifest.signatures.items():  # equal mappings can still differ in order
        assert list(read.signatures[name].inputs) == list(signature.inputs)


@st.composite
def tensor_lists(draw):
    tensors = []
    for _ in range(draw(st.integers(0, 6))):
        dtype, shape = draw(st.sampled_from(STORABLE)), draw(shapes)
        size = BY_NAME[dtype].itemsize * prod(shape)
        tensors.append((dtype, shape, draw(st.binary(min_size=size, max_size=size))))
    return tensors + draw(st.lists(st.sampled_from(tensors), max_size=3)) if tensors else tensors


@settings(max_examples=60)
@given(tensor_lists())
def test_tensors_round_trip_and_each_is_stored_once(tensors):
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        with BundleWriter(root) as writer:
            writer.add_file("graph.pb", graph(*(node(f"w{i}", "Placeholder") for i in range(len(tensors)))))
            indices = [writer.add_tensor(f"w{i}", "", *one) for i, one in enumerate(tensors)]
            manifest = writer.finish(engine="native", signatures={})
        bundle = open_bundle(root)
        assert bundle.manifest == manifest
        assert len(manifest.tensors) == len(set(tensors))
        with bundle.map_weights() as weights:
            for index, (dtype, shape, data) in zip(indices, tensors, strict=True):
                stored = manifest.tensors[index]
                assert (stored.dtype, stored.shape) == (dtype, shape)
                assert stored.offset % 64 == 0
                assert weights[stored.offset : stored.offset + stored.nbytes] == data
        verify(root)
