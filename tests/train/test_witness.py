"""What runs in a trace and is not in its key is named."""

from __future__ import annotations

import collections
import dataclasses
import functools
import sys
import time
import types

import pytest

from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.fingerprint.stock.survey import survey
from glowplug.train.fingerprint.walker import Walker
from glowplug.train.verify import witness as witness_module
from glowplug.train.verify.witness import Witness

pytestmark = pytest.mark.tensorflow

HIDDEN = types.SimpleNamespace()


def judged(function, hashed=None):
    """Walk `hashed`, run `function` before a witness, and return what is said about it."""
    walker = Walker()
    walker.visit(hashed or function, "function")
    with Witness() as witness:
        function()
    try:
        witness.check(walker.code, survey().generated)
    except NoKeyError as error:
        return error.reason
    return ""


def test_code_that_is_in_the_key_may_run():
    assert judged(lambda: sorted([len("abc"), 1])) == ""


def test_code_that_no_key_holds_is_named():
    def other():
        return 1

    def mine():
        return 2

    assert "other" in judged(other, hashed=mine)
    assert "no key holds it" in judged(other, hashed=mine)


def test_a_compiled_function_that_is_on_no_list_is_named():
    space = {}
    exec("def factor(clock): return clock()", space)
    factor = space["factor"]
    assert "perf_counter" in judged(functools.partial(factor, time.perf_counter), hashed=factor)


def test_an_objection_counts_only_where_the_code_runs():
    class Holder:
        def harmless(self):
            return 1

        def clock(self):
            return time.time()

    holder = Holder()
    assert judged(holder.harmless) == ""
    assert "time.time" in judged(holder.clock)


def test_a_profiler_at_work_means_no_witness():
    sys.setprofile(lambda *_: None)
    try:
        assert "another profiler" in judged(lambda: 1)
    finally:
        sys.setprofile(None)


def test_what_setuptools_adds_to_every_import_may_run(tmp_path, monkeypatch):
    site = tmp_path / "site-packages"
    for place in ("site-packages/_distutils_hack/__init__.py", "elsewhere/_distutils_hack/__init__.py"):
        (tmp_path / place).parent.mkdir(parents=True)
        space = {}
        exec(compile("def find_spec(): return None", str(tmp_path / place), "exec"), space)
        (tmp_path / place).touch()
        monkeypatch.setattr(witness_module.sysconfig, "get_path", lambda name: str(site))
        said = judged(space["find_spec"], hashed=test_code_that_is_in_the_key_may_run)
        assert ("find_spec" in said) == place.startswith("elsewhere")


@pytest.mark.parametrize("fields", ["one", "one two"])
def test_a_named_tuple_may_be_made(fields):
    assert judged(lambda: collections.namedtuple("Made", fields)) == ""


def test_a_data_class_may_be_made():
    class Made:
        one: int = 1
        two: float = 2.0

    assert judged(lambda: dataclasses.dataclass(frozen=True)(Made)) == ""


def test_a_text_that_does_more_than_define_may_not_be_evaluated():
    code = compile("[each for each in (1, 2)]", "<string>", "eval")
    assert "no key holds it" in judged(functools.partial(eval, code, {}), hashed=test_code_that_is_in_the_key_may_run)
