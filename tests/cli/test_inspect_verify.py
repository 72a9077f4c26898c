"""`glowplug inspect` and `glowplug verify`: good bundles, and bundles of every kind of bad."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from glowplug.bundle import schema
from glowplug.bundle.reader import open_bundle
from glowplug.cli.description import equality, output_differences

pytestmark = [pytest.mark.tensorflow]


def rewrite(bundle, **changes):
    manifest = replace(open_bundle(bundle).manifest, **changes)
    (bundle / "bundle.json").write_bytes(schema.dump(manifest))
    return manifest


@pytest.mark.core
def test_inspect_shows_everything(call, shared_bundle):
    code, out, err = call("inspect", shared_bundle)
    assert (code, err) == (0, "")
    for text in ("native bundle", "serving_default", "repeat", "float32[?, 3]", "string[?]", "float32[3, 4]"):
        assert text in out
    for heading in ("signatures", "tensors (", "files", "provenance", "equivalence"):
        assert f"\n{heading}" in out
    assert "weights.bin" in out


def test_inspect_as_json_is_the_manifest(call, shared_bundle):
    code, out, _ = call("inspect", shared_bundle, "--json")
    document = json.loads(out)
    assert code == 0
    assert document["loads_without_trust"] is True
    assert document["manifest"] == json.loads((shared_bundle / "bundle.json").read_text())["manifest"]


def test_inspect_lists_the_largest_tensors_first(call, tiny_bundle):
    manifest = open_bundle(tiny_bundle).manifest
    assert len(manifest.tensors) == 1
    first = manifest.tensors[0]
    small = replace(first, node="small", name="small", shape=(0,), nbytes=0)
    rewrite(tiny_bundle, tensors=(small, first), variables=())
    code, out, _ = call("inspect", tiny_bundle, "--tensors", "1")
    assert code == 0
    assert "tensors (1 of 2" in out
    assert "small" not in out
    assert "tensors (2 of 2" in call("inspect", tiny_bundle, "--tensors", "0")[1]


@pytest.mark.parametrize(
    "equivalence",
    [{}, {"calls": 3}, {"calls": {"a": "b"}, "outputs": {"a": {}}}, {"outputs": [1]}, {"calls": {"a": 1}}],
)
def test_a_strange_record_of_equivalence_is_not_believed(call, tiny_bundle, equivalence):
    manifest = rewrite(tiny_bundle, equivalence=equivalence)
    assert equality(manifest) == "there is no record of a comparison with its source"
    assert output_differences(manifest) == []
    assert call("inspect", tiny_bundle)[0] == 0


def test_provenance_cannot_write_to_the_terminal(call, tiny_bundle):
    rewrite(tiny_bundle, provenance={"name": "\x1b[31mred", "deep": {"a": ["\x07"]}})
    code, out, _ = call("inspect", tiny_bundle)
    assert code == 0
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "red" in out


@pytest.mark.core
def test_verify_a_good_bundle(call, shared_bundle):
    code, out, err = call("verify", shared_bundle)
    assert (code, err) == (0, "")
    assert ": good (" in out


def test_verify_as_json_names_unlisted_files(call, tiny_bundle):
    (tiny_bundle / "stray.txt").write_text("?")
    code, out, err = call("verify", tiny_bundle, "--json")
    document = json.loads(out)
    assert code == 0
    assert document["good"] is True
    assert document["unlisted"] == ["stray.txt"]
    assert "stray.txt" in err


def flip(path):
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("verb", ["inspect", "verify"])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda bundle: (bundle / "bundle.json").unlink(), "not a bundle"),
        (lambda bundle: (bundle / "bundle.json").write_text("{"), "the manifest is not JSON"),
        (lambda bundle: (bundle / "bundle.json").write_text('{"glowplug_bundle": 9}'), "newer format"),
        (lambda bundle: (bundle / "graph.pb").unlink(), "lacks a file"),
        (lambda bundle: flip(bundle / "graph.pb"), "graph.pb is not what was packed"),
        (lambda bundle: (bundle / "weights.bin").write_bytes(b""), "not as long as the manifest says"),
    ],
)
def test_damage_is_one_line_and_exit_code_3(call, tiny_bundle, verb, damage, message):
    damage(tiny_bundle)
    code, out, err = call(verb, tiny_bundle)
    assert (code, out) == (3, "")
    assert err.startswith("glowplug: ")
    assert err.count("\n") == 1
    assert message in err


def test_verify_finds_a_flipped_bit_in_the_weights(call, tiny_bundle):
    flip(tiny_bundle / "weights.bin")
    assert call("inspect", tiny_bundle)[0] == 0
    code, _, err = call("verify", tiny_bundle)
    assert code == 3
    assert "weights.bin is not what was packed" in err
