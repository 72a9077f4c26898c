"""At least one hostile bundle for each way of being wrong: it must raise exactly that error."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest

from glowplug.bundle import schema
from glowplug.bundle.reader import open_bundle
from glowplug.bundle.verify import verify
from glowplug.core import errors
from glowplug.core.errors import BundleError

from .samples import copy_golden, edit_manifest, field, function, graph, node, replace_file, seal, varint

CASES = []


def case(error: type[BundleError], *, only_verify: bool = False):
    """Register a function that spoils the copy of the golden bundle it is given."""

    def register(spoil):
        CASES.append(pytest.param(error, spoil, only_verify, id=f"{error.__name__}-{spoil.__name__}"))
        return spoil

    return register


def edits(error: type[BundleError], name: str, edit) -> None:
    def spoil(root):
        edit_manifest(root, edit)

    spoil.__name__ = name
    case(error)(spoil)


def graphs(error: type[BundleError], name: str, data: bytes) -> None:
    def spoil(root):
        replace_file(root, "graph.pb", data)

    spoil.__name__ = name
    case(error, only_verify=True)(spoil)


@case(errors.NotABundleError)
def no_manifest(root):
    (root / "bundle.json").unlink()


@case(errors.NotABundleError)
def manifest_is_a_directory(root):
    (root / "bundle.json").unlink()
    (root / "bundle.json").mkdir()


@case(errors.ManifestTooLargeError)
def huge_manifest(root):
    with (root / "bundle.json").open("r+b") as stream:
        stream.truncate(schema.MAX_MANIFEST_BYTES + 1)


def manifest_bytes(name: str, data: bytes) -> None:
    def spoil(root):
        (root / "bundle.json").write_bytes(data)

    spoil.__name__ = name
    case(errors.ManifestMalformedError)(spoil)


manifest_bytes("empty_manifest", b"")
manifest_bytes("not_json", b"{")
manifest_bytes("not_ascii", '{"glowplug_bundle": "é"}'.encode("latin-1"))
manifest_bytes("not_an_object", b"[]\n")
manifest_bytes("deeply_nested", b"[" * 100_000 + b"]" * 100_000)
manifest_bytes("huge_number", b"9" * 10_000)
manifest_bytes("no_version", b"{}\n")
manifest_bytes("version_zero", b'{"glowplug_bundle":0}\n')
manifest_bytes("version_true", b'{"glowplug_bundle":true}\n')
manifest_bytes("manifest_is_null", seal(None))
manifest_bytes("nan", b'{"glowplug_bundle":1,"manifest":NaN,"sha256":""}\n')


@case(errors.ManifestMalformedError)
def duplicate_key(root):
    path = root / "bundle.json"
    path.write_bytes(path.read_bytes().replace(b'"engine":"native"', b'"engine":"native","engine":"native"'))


@case(errors.ManifestMalformedError)
def duplicate_key_among_many(root):
    """To find which one it is must not take the square of how many there are."""
    keys = ",".join(f'"{number}":1' for number in [*range(300_000), 299_999])
    (root / "bundle.json").write_text(f'{{"glowplug_bundle":1,"manifest":{{{keys}}}}}')


@case(errors.ManifestMalformedError)
def other_spacing(root):
    path = root / "bundle.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=1))


@case(errors.NewerFormatError)
def newer_format_whose_digest_we_cannot_know(root):
    (root / "bundle.json").write_bytes(b'{"glowplug_bundle":2,"unheard_of":[]}')


@case(errors.DigestError)
def manifest_changed_without_its_digest(root):
    path = root / "bundle.json"
    path.write_bytes(path.read_bytes().replace(b'"max_absolute":0.0', b'"max_absolute":1.0'))


@case(errors.DigestError, only_verify=True)
def graph_changed(root):
    data = bytearray((root / "graph.pb").read_bytes())
    data[40] ^= 1
    (root / "graph.pb").write_bytes(data)


@case(errors.DigestError, only_verify=True)
def weights_changed(root):
    data = bytearray((root / "weights.bin").read_bytes())
    data[0] ^= 1
    (root / "weights.bin").write_bytes(data)


@case(errors.MissingFileError)
def file_removed(root):
    (root / "assets/vocab.txt").unlink()


@case(errors.MissingFileError)
def file_is_a_directory(root):
    (root / "assets/vocab.txt").unlink()
    (root / "assets/vocab.txt").mkdir()


@case(errors.MissingFileError)
def file_is_a_pipe(root):
    (root / "weights.bin").unlink()
    os.mkfifo(root / "weights.bin")


@case(errors.MissingFileError)
def link_that_loops(root):
    (root / "weights.bin").unlink()
    (root / "weights.bin").symlink_to("weights.bin")


@case(errors.FileSizeError)
def weights_cut_off(root):
    with (root / "weights.bin").open("r+b") as stream:
        stream.truncate(100)


@case(errors.FileSizeError)
def asset_grown(root):
    with (root / "assets/vocab.txt").open("ab") as stream:
        stream.write(b"more")


@case(errors.UnsafePathError)
def link_that_leaves(root):
    outside = root.parent / "outside.bin"
    (root / "weights.bin").rename(outside)
    (root / "weights.bin").symlink_to(outside)


@case(errors.UnsafePathError)
def directory_link_that_leaves(root):
    outside = root.parent / "elsewhere"
    (root / "assets").rename(outside)
    (root / "assets").symlink_to(outside, target_is_directory=True)


@case(errors.UnsafePathError)
def directory_whose_name_begins_like_ours(root):
    sibling = root.parent / f"{root.name}-other"
    sibling.mkdir()
    (root / "weights.bin").rename(sibling / "weights.bin")
    (root / "weights.bin").symlink_to(f"../{sibling.name}/weights.bin")


UNSAFE = {
    "parent": "../outside",
    "parent_inside": "assets/../../outside",
    "absolute": "/etc/passwd",
    "empty": "",
    "empty_component": "assets//vocab.txt",
    "dot": "./graph.pb",
    "trailing_slash": "assets/",
    "backslash": "assets\\vocab.txt",
    "nul": "assets/vocab\0.txt",
    "newline": "assets/vocab\n.txt",
    "surrogate": "assets/\ud800",
    "long_component": "assets/" + "x" * 256,
    "long": "/".join(["x" * 200] * 6),
}
for _name, _path in UNSAFE.items():
    _entry = {"size": 0, "sha256": "0" * 64}
    edits(errors.UnsafePathError, f"file_{_name}", lambda m, p=_path, e=_entry: m["files"].update({p: e}))
    edits(errors.UnsafePathError, f"asset_{_name}", lambda m, p=_path: m["assets"][0].update(path=p))
edits(errors.UnsafePathError, "asset_outside_assets", lambda m: m["assets"][0].update(path="graph.pb"))
edits(errors.MissingFileError, "asset_not_listed", lambda m: m["assets"][0].update(path="assets/other.txt"))


def tensor(index: int, **values):
    return lambda m: m["tensors"][index].update(values)


edits(errors.TensorOverlapError, "same_bytes", tensor(1, offset=0))
edits(errors.TensorOutOfBoundsError, "past_the_end", tensor(1, shape=[30], nbytes=120))
edits(errors.TensorOutOfBoundsError, "far_away", tensor(2, offset=2**60))
edits(errors.TensorMisalignedError, "odd_offset", tensor(1, offset=68))
edits(errors.TensorSizeError, "nbytes_too_large", tensor(0, nbytes=28))
edits(errors.TensorSizeError, "product_overflows", tensor(0, shape=[2**62, 2**62]))
edits(
    errors.TensorSizeError,
    "variable_of_another_size",
    lambda m: m.update(variables=[{"name": "v", "shape": [2**62, 2**62], "tensor": 0}]),
)
edits(errors.UnknownDtypeError, "tensor_of_strings", tensor(0, dtype="string"))
edits(errors.UnknownDtypeError, "tensor_of_unknown", tensor(0, dtype="float7"))
edits(errors.UnknownDtypeError, "tensor_dtype_no_text", tensor(0, dtype=["float32"]))
edits(
    errors.UnknownDtypeError,
    "port_of_unknown",
    lambda m: m["signatures"]["lookup"]["inputs"][0].update(dtype="text"),
)

for _name, _dims in {
    "negative": [-1],
    "true": [True, 6],
    "float": [6.0],
    "too_large": [2**62 + 1],
    "null": [None],
    "text": ["6"],
    "object": {"0": 6},
    "rank": [1] * 255,
}.items():
    edits(errors.ManifestMalformedError, f"dims_{_name}", tensor(0, shape=_dims))


def signature(**values):
    return lambda m: m["signatures"]["serving_default"].update(values)


def port(**values):
    return lambda m: m["signatures"]["serving_default"]["inputs"][0].update(values)


for _name, _edit in {
    "engine_unknown": lambda m: m.update(engine="turbo"),
    "engine_list": lambda m: m.update(engine=["native"]),
    "litert_without_model": lambda m: m.update(engine="litert"),
    "savedmodel_without_model": lambda m: m.update(engine="savedmodel"),
    "native_without_graph": lambda m: m["files"].pop("graph.pb"),
    "tensors_without_weights": lambda m: m["files"].pop("weights.bin"),
    "field_missing": lambda m: m.pop("fingerprint"),
    "field_unknown": lambda m: m.update(extra=1),
    "offset_true": tensor(1, offset=True),
    "offset_negative": tensor(1, offset=-64),
    "offset_float": tensor(1, offset=64.0),
    "offsets_unsorted": lambda m: m["tensors"].reverse(),
    "node_twice": tensor(1, node="weights/kernel"),
    "node_with_control": tensor(1, node="^weights/kernel"),
    "name_too_long": tensor(1, name="x" * 5000),
    "name_with_escape": tensor(1, name="\x1b[2J"),
    "variable_out_of_range": lambda m: m.update(variables=[{"name": "v", "shape": [6], "tensor": 3}]),
    "variable_without_a_name": lambda m: m.update(variables=[{"name": "", "shape": [6], "tensor": 0}]),
    "weights_of_no_node": lambda m: m["tensors"][m["signatures"]["serving_default"]["weights"][0]].update(node=""),
    "weights_out_of_range": signature(weights=[3]),
    "weights_negative": signature(weights=[-1]),
    "weights_true": signature(weights=[True]),
    "weights_twice": signature(weights=[0, 0]),
    "targets_not_nodes": signature(targets=["a b"]),
    "init_weights_out_of_range": lambda m: m["initializers"][0].update(weights=[3]),
    "port_without_index": port(tensor="x"),
    "port_index_signed": port(tensor="x:-1"),
    "port_index_padded": port(tensor="x:00"),
    "port_index_huge": port(tensor="x:9999999999"),
    "port_shape_text": port(shape="any"),
    "port_twice": lambda m: m["signatures"]["lookup"]["inputs"].append(m["signatures"]["lookup"]["inputs"][0]),
    "signature_name_empty": lambda m: m["signatures"].update({"": m["signatures"]["lookup"]}),
    "manifest_lists_itself": lambda m: m["files"].update({"bundle.json": {"size": 0, "sha256": "0" * 64}}),
    "digest_upper_case": lambda m: m["files"]["graph.pb"].update(sha256="A" * 64),
    "size_negative": lambda m: m["files"]["graph.pb"].update(size=-1),
    "library_is_a_path": lambda m: m.update(op_libraries=["../evil.so"]),
    "asset_path_number": lambda m: m["assets"][0].update(path=1),
    "asset_node_twice": lambda m: m["assets"].append(m["assets"][0]),
    "fingerprint_text": lambda m: m.update(fingerprint="here"),
    "provenance_list": lambda m: m.update(provenance=[]),
    "provenance_surrogate": lambda m: m.update(provenance={"a": "\udfff"}),
    "provenance_deep": lambda m: m.update(provenance=json.loads('{"a":' * 40 + "1" + "}" * 40)),
}.items():
    edits(errors.ManifestMalformedError, _name, _edit)


@case(errors.ManifestMalformedError)
def infinity_written_as_a_number(root):
    body = json.loads((root / "bundle.json").read_bytes())["manifest"]
    body["provenance"] = {"a": 12345.5}
    sealed = seal(body).replace(b"12345.5", b"1e99999")
    head, tail = len(b'{"glowplug_bundle":1,"manifest":'), len(b',"sha256":""}\n') + 64
    import hashlib

    digest = hashlib.sha256(sealed[head:-tail]).hexdigest().encode()
    (root / "bundle.json").write_bytes(sealed[:-tail] + b',"sha256":"' + digest + b'"}\n')


@case(errors.PaddingError, only_verify=True)
def message_hidden_between_tensors(root):
    data = bytearray((root / "weights.bin").read_bytes())
    data[30:36] = b"hidden"
    replace_file(root, "weights.bin", bytes(data))


@case(errors.PaddingError, only_verify=True)
def message_hidden_after_the_last_tensor(root):
    replace_file(root, "weights.bin", (root / "weights.bin").read_bytes() + b"hidden")


GOOD = (
    node("x", "Placeholder"),
    node("weights/kernel", "Placeholder"),
    node("weights/bias", "Placeholder"),
    node("weights/empty", "Placeholder"),
    node("y", "MatMul", "x", "weights/kernel"),
    node("vocab_path", "Placeholder"),
    node("table", "HashTableV2"),
    node("init_table", "InitializeTableFromTextFileV2", "table", "vocab_path"),
    node("text", "Placeholder"),
    node("ids", "LookupTableFindV2", "table", "text"),
    node("done", "NoOp"),
)


def replaced(name: str, new: bytes | None) -> bytes:
    kept = [one for one in GOOD if not one.startswith(field(1, name))]
    return graph(*kept, *([new] if new else []))


graphs(errors.GraphMalformedError, "graph_cut_off", graph(*GOOD)[:-1])
graphs(errors.GraphMalformedError, "trailing_byte", graph(*GOOD) + b"\x0a")
graphs(errors.GraphMalformedError, "length_past_the_end", graph(*GOOD) + b"\x0a\x7f")
graphs(errors.GraphMalformedError, "length_past_the_message", graph(*GOOD, field(1, "n") + b"\x12\x7fNoOp"))
graphs(errors.GraphMalformedError, "overlong_tag", graph(*GOOD) + b"\x8a\x00\x00")
graphs(errors.GraphMalformedError, "overlong_length", graph(*GOOD, field(1, "n") + b"\x12\x84\x00NoOp"))
graphs(errors.GraphMalformedError, "endless_varint", graph(*GOOD) + b"\x18" + b"\xff" * 10 + b"\x01")
graphs(errors.GraphMalformedError, "varint_above_64_bits", graph(*GOOD) + b"\x18" + b"\xff" * 9 + b"\x02")
graphs(errors.GraphMalformedError, "field_number_zero", graph(*GOOD) + b"\x02\x00")
graphs(errors.GraphMalformedError, "field_number_too_large", graph(*GOOD) + varint(2**32 | 2) + b"\x00")
graphs(errors.GraphMalformedError, "group", graph(*GOOD) + b"\x53\x54")
graphs(errors.GraphMalformedError, "node_is_a_number", graph(*GOOD) + b"\x08\x01")
graphs(errors.GraphMalformedError, "version_is_bytes", graph(*GOOD) + field(3, b""))
graphs(errors.GraphMalformedError, "op_is_a_number", graph(*GOOD, field(1, "n") + b"\x10\x01"))
graphs(errors.GraphMalformedError, "fixed_cut_off", graph(*GOOD) + b"\x51" + b"\0" * 7)
graphs(errors.GraphMalformedError, "two_ops", graph(*GOOD, node("n", "NoOp") + field(2, "ReadFile")))
graphs(errors.GraphMalformedError, "two_names", graph(*GOOD, node("n", "NoOp") + field(1, "m")))
graphs(errors.GraphMalformedError, "no_op", graph(*GOOD, field(1, "n")))
graphs(errors.GraphMalformedError, "same_name_twice", graph(*GOOD, node("x", "NoOp")))
graphs(errors.GraphMalformedError, "name_not_utf8", graph(*GOOD, field(1, b"\xff") + field(2, "NoOp")))
graphs(
    errors.GraphMalformedError,
    "function_without_name",
    graph(*GOOD, functions=(field(3, node("n", "NoOp")),)),
)
graphs(
    errors.GraphMalformedError,
    "function_with_two_signatures",
    graph(*GOOD, functions=(function("f_1") + field(1, field(1, "g_1")),)),
)
graphs(errors.GraphMalformedError, "function_twice", graph(*GOOD, functions=(function("f_1"), function("f_1"))))

for _op in ("ReadFile", "WriteFile", "ImmutableConst", "PyFunc", "SaveV2", "DatasetFromGraph", "NoSuchOp"):
    graphs(errors.OpNotAllowedError, f"op_{_op}", graph(*GOOD, node("n", _op)))
graphs(
    errors.OpNotAllowedError,
    "op_in_a_function",
    graph(*GOOD, functions=(function("f_1", node("n", "ReadFile")),)),
)
graphs(
    errors.OpNotAllowedError,
    "op_in_a_second_library",
    graph(*GOOD, functions=(function("f_1"),)) + field(2, field(1, function("g_1", node("n", "ReadFile")))),
)
graphs(
    errors.OpNotAllowedError,
    "function_named_like_an_op",
    graph(*GOOD, node("n", "ReadFile"), functions=(function("ReadFile"),)),
)
graphs(
    errors.OpNotAllowedError,
    "file_name_from_a_constant",
    replaced("init_table", node("init_table", "InitializeTableFromTextFileV2", "table", "elsewhere"))
    + field(1, node("elsewhere", "Const")),
)
graphs(
    errors.OpNotAllowedError,
    "file_name_from_an_input",
    replaced("init_table", node("init_table", "InitializeTableFromTextFileV2", "table", "text")),
)
graphs(
    errors.OpNotAllowedError,
    "file_name_is_a_control_input",
    replaced("init_table", node("init_table", "InitializeTableFromTextFile", "table", "^vocab_path")),
)
graphs(
    errors.OpNotAllowedError,
    "file_name_missing",
    replaced("init_table", node("init_table", "InitializeTableFromTextFileV2", "table")),
)
graphs(
    errors.OpNotAllowedError,
    "file_read_in_a_function",
    graph(*GOOD, functions=(function("f_1", node("n", "InitializeTableFromTextFileV2", "t", "vocab_path")),)),
)


@case(errors.OpNotAllowedError, only_verify=True)
def file_name_fed_by_the_caller(root):
    edit_manifest(root, lambda m: m["signatures"]["lookup"]["inputs"][0].update(tensor="vocab_path:0"))


for _name in ("x", "y", "weights/bias", "vocab_path", "init_table", "done"):
    graphs(errors.UnknownNodeError, f"no_node_{_name}", replaced(_name, None))
graphs(
    errors.UnknownNodeError,
    "weight_is_no_placeholder",
    replaced("weights/bias", node("weights/bias", "Const")),
)
graphs(errors.UnknownNodeError, "asset_is_no_placeholder", replaced("vocab_path", node("vocab_path", "Const")))


LITERT = {"interface": "interpreter", "any_shape": False, "packed": None}


def _as_litert(root: Path, data: bytes, settings: object) -> None:
    replace_file(root, "model.tflite", data)
    edit_manifest(root, lambda body: body.update(engine="litert", litert=settings))


@case(errors.TfliteMalformedError, only_verify=True)
def no_litert_model(root):
    _as_litert(root, b"1234TFL3" * 4, LITERT)


@case(errors.TfliteMalformedError, only_verify=True)
def empty_litert_model(root):
    _as_litert(root, b"", LITERT)


@case(errors.ManifestMalformedError)
def litert_without_settings(root):
    replace_file(root, "model.tflite", b"")
    edit_manifest(root, lambda body: body.update(engine="litert"))


edits(errors.ManifestMalformedError, "litert_settings_of_another_engine", lambda body: body.update(litert=LITERT))


@case(errors.ManifestMalformedError)
def litert_interface_unknown(root):
    _as_litert(root, b"", {**LITERT, "interface": "fast"})


@case(errors.ManifestMalformedError)
def litert_any_shape_is_a_number(root):
    _as_litert(root, b"", {**LITERT, "any_shape": 1})


@case(errors.ManifestMalformedError)
def litert_largest_is_no_magnitude(root):
    _as_litert(root, b"", {**LITERT, "largest": -1.0})


@case(errors.ManifestMalformedError)
def packed_weights_without_a_digest(root):
    _as_litert(root, b"", {**LITERT, "packed": {"machine": "../../x", "size": 1, "sha256": "0" * 64}})


@pytest.mark.parametrize(("error", "spoil", "only_verify"), CASES)
def test_hostile_bundle_is_refused(error, spoil, only_verify, tmp_path):
    root = copy_golden(tmp_path / "bundle")
    spoil(root)
    with pytest.raises(BundleError) as caught:
        verify(root)
    assert type(caught.value) is error
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 2000
    if only_verify:
        open_bundle(root)
    else:
        with pytest.raises(error):
            open_bundle(root)


def test_the_graph_that_the_hostile_ones_vary_is_good(tmp_path):
    root = copy_golden(tmp_path / "bundle")
    replace_file(root, "graph.pb", graph(*GOOD, functions=(function("f_1", node("n", "NoOp")),)))
    verify(root)


def test_every_way_of_being_wrong_has_a_hostile_bundle():
    def below(error):
        for one in error.__subclasses__():
            yield one
            yield from below(one)

    trust_is_decided_by_the_loader = {errors.UntrustedBundleError}
    assert {one.values[0] for one in CASES} == set(below(BundleError)) - trust_is_decided_by_the_loader


@pytest.mark.parametrize("path", ["missing", "file"])
def test_what_is_no_directory_is_no_bundle(path, tmp_path: Path):
    (tmp_path / "file").write_bytes(struct.pack("<Q", 0))
    with pytest.raises(errors.NotABundleError):
        open_bundle(tmp_path / path)
