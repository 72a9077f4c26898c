"""A variable's value is kept and shown where it is known to be harmless; of any other there is a digest."""

from __future__ import annotations

import pytest

from glowplug.core.disclosure import disclosed, disclosed_variables


@pytest.mark.parametrize("name", ["KERAS_BACKEND", "TF_CPP_MIN_LOG_LEVEL", "PYTHONPATH", "XLA_FLAGS"])
def test_what_is_known_to_matter_is_readable(name):
    assert disclosed(name, "some value") == "some value"


@pytest.mark.parametrize("name", ["TF_VAR_db_password", "TF_TOKEN_app_terraform_io", "TF_API_KEY", "XLA_X", "KERAS_"])
def test_the_rest_is_a_digest(name):
    shown = disclosed(name, "hunter2")
    assert "hunter2" not in shown
    assert shown.startswith("digest:")
    assert shown == disclosed(name, "hunter2")
    assert shown != disclosed(name, "hunter3")
    assert shown != disclosed(f"{name}_", "hunter2")


def test_bytes_that_are_no_text_have_a_digest_too():
    assert disclosed("TF_X", "\udcff") != disclosed("TF_X", "\udcfe")


def test_many_at_once():
    assert disclosed_variables({"LANG": "C"}) == {"LANG": "C"}
    assert disclosed_variables({"TF_VAR_a": "1"}) == {"TF_VAR_a": disclosed("TF_VAR_a", "1")}
