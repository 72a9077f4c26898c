"""Keys: equal only where every component is, and able to say what differs."""

from __future__ import annotations

from glowplug.train.trace.key import ANY_SEED, Change, Key, changes, from_texts, joined


def test_a_digest_depends_on_every_name_and_value():
    digests = {
        Key(components).digest
        for components in (
            {},
            {"a": "1"},
            {"a": "2"},
            {"b": "1"},
            {"a": "1", "b": "1"},
            {"a": "1b1"},
            {"a1": "b1"},
        )
    }
    assert len(digests) == 7


def test_order_does_not_matter():
    assert Key({"a": "1", "b": "2"}).digest == Key({"b": "2", "a": "1"}).digest


def test_texts_cannot_run_into_each_other():
    assert from_texts({"x": {"a": "bc"}}).digest != from_texts({"x": {"ab": "c"}}).digest


def test_changes_name_the_value():
    before = from_texts({"model": {"model.rate": "0.25", "model.units": "4"}, "cpu": {"": "avx"}})
    after = from_texts({"model": {"model.rate": "0.5", "model.units": "4"}, "cpu": {"": "avx"}})
    assert changes(before, after) == [Change("model", "model.rate", "0.25", "0.5")]
    assert str(changes(before, after)[0]) == "model: model.rate 0.25 -> 0.5"


def test_a_component_that_only_follows_is_not_named():
    before, after = from_texts({"model": {"a": "1"}}), from_texts({"model": {"a": "2"}})
    moved = Key({**before.components, "optimizer": "x"}, before.leaves)
    moved_after = Key({**after.components, "optimizer": "y"}, after.leaves)
    assert [change.component for change in changes(moved, moved_after)] == ["model"]
    assert [change.component for change in changes(Key({"a": "1"}), Key({"a": "2"}))] == ["a"]


def test_a_trace_that_takes_any_seed_does_not_blame_the_seed():
    key = from_texts({"model": {"a": "1"}})
    assert changes(key.plus("seed", ANY_SEED), key.plus("seed", "5")) == []
    assert len(changes(key.plus("seed", "4"), key.plus("seed", "5"))) == 1


def test_joined_keys_have_all_components():
    key = joined(from_texts({"a": {"": "1"}}), from_texts({"b": {"": "2"}}))
    assert set(key.components) == {"a", "b"}
