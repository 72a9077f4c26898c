"""Names of attributes that code may read: what is allowed, what is held, and what is neither."""

from __future__ import annotations

from glowplug.train.fingerprint.code.names import names_of_code, unknown_name, unknown_pieces


def test_a_private_name_must_be_held():
    assert unknown_name(frozenset({"_id", "shape"}), set()) == "_id"
    assert unknown_name(frozenset({"_id", "shape"}), {"_id"}) is None
    assert unknown_name(frozenset({"shape", "__init__", "__add__", "__class__", "_keras_mask"}), set()) is None


def test_what_shows_everything_or_an_address_is_not_allowed():
    for name in ("__dict__", "__array_interface__", "__weakref__", "__hash__", "__sizeof__", "graph"):
        assert unknown_name(frozenset({name}), set()) == name


def test_pieces_of_names():
    assert unknown_pieces({"__in", "_own", "_id", "dense_"}, {"_own"}) == ["__in", "_id"]


def test_code_of_a_class_is_held_and_its_data_is_not():
    class Stock:
        _number = 1

        def _method(self) -> None:
            """Do nothing."""

        @property
        def _asked(self) -> int:
            return 1

        def __special__(self) -> None:
            """Do nothing."""

    assert names_of_code(Stock) == {"_method", "_asked"}
