"""A second look through stock code finds what a first one would have found."""

from __future__ import annotations

import collections.abc
import gc
from importlib.util import find_spec, module_from_spec
from typing import Any

import pytest

from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.fingerprint.stock import survey as module
from glowplug.train.fingerprint.stock.abstract import registered_subclasses
from glowplug.train.fingerprint.stock.survey import Survey, survey

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True)
def loaded() -> None:
    import keras  # noqa: F401


def afresh() -> Survey:
    module._Latest.surveyor = None
    return survey()


def told(one: Survey) -> tuple[Any, ...]:
    return dict(one.modules), dict(one.apart), one.replaced, one.registered


def assert_noticed(before: Survey) -> Survey:
    now = survey()
    assert told(now) != told(before)
    assert told(now) == told(afresh())
    return now


def test_nothing_is_read_again_without_a_change():
    first = survey()
    assert survey() is first
    assert told(afresh()) == told(first)


def test_a_function_put_in_the_place_of_another(monkeypatch):
    from keras.src.backend.tensorflow import nn

    before = survey()
    monkeypatch.setattr(nn, "relu", lambda x: x)
    now = assert_noticed(before)
    places = [place for place, _ in now.replaced if "pil_image" not in place]  # those are there with Pillow
    assert places == ["keras.src.backend.tensorflow.nn.relu"]
    monkeypatch.undo()
    assert told(survey()) == told(before)


@pytest.mark.parametrize("values", [(1, 1.0), (1, True), (0.0, -0.0)])
def test_values_that_are_equal_and_not_the_same(values, monkeypatch):
    from keras.src.backend.tensorflow import nn

    monkeypatch.setattr(nn.leaky_relu, "__defaults__", (values[0],))
    monkeypatch.setattr(nn, "glowplug_value", values[0], raising=False)
    before = survey()
    monkeypatch.setattr(nn, "glowplug_value", values[1])
    before = assert_noticed(before)
    monkeypatch.setattr(nn.leaky_relu, "__defaults__", (values[1],))
    assert_noticed(before)


def test_a_name_that_was_changed(monkeypatch):
    from keras.src.backend.tensorflow import nn

    monkeypatch.setattr(nn, "glowplug_one", 5, raising=False)
    before = survey()
    monkeypatch.delattr(nn, "glowplug_one")
    monkeypatch.setattr(nn, "glowplug_two", 5, raising=False)
    assert_noticed(before)


def test_an_attribute_of_a_function_and_of_an_object(monkeypatch):
    import tensorflow as tf

    before = survey()
    monkeypatch.setattr(tf.nn.relu, "glowplug_value", 2.0, raising=False)
    before = assert_noticed(before)
    monkeypatch.setattr(tf.float32, "glowplug_value", 2.0, raising=False)
    assert_noticed(before)


def newly_registered(before: Survey, now: Survey) -> list[Any]:
    """Other packages that this process has loaded may have registered classes of theirs, too."""
    known = dict(before.registered)
    return [value for place, value in now.registered if place not in known]


def test_what_is_registered(monkeypatch):
    import keras

    class Holder:
        pass

    before = survey()
    monkeypatch.setitem(keras.saving.get_custom_objects(), "glowplug", Holder)
    now = assert_noticed(before)
    assert newly_registered(before, now) == [Holder]
    collections.abc.Sequence.register(Holder)
    now = assert_noticed(now)
    assert newly_registered(before, now) == [Holder, Holder]


def test_what_numpy_left_of_a_loop_may_change(monkeypatch):
    from numpy.ma import core

    before = survey()
    monkeypatch.setitem(vars(core.info), "iexp", 1)  # computed when somebody asks
    assert told(survey()) == told(afresh()) == told(before)


def test_what_no_step_uses_may_be_loaded_later(monkeypatch):
    """TensorFlow's own old Keras registers a dispatcher, and is imported when Keras first needs a placeholder."""
    from tensorflow.python.keras.layers import core
    from tensorflow.python.util import dispatch

    monkeypatch.setattr(dispatch, "_GLOBAL_DISPATCHERS", [])
    before = told(survey())
    monkeypatch.setattr(dispatch, "_GLOBAL_DISPATCHERS", [core.KerasOpDispatcher()])
    assert told(survey()) == told(afresh()) == before


def test_a_dispatcher_of_a_program_counts(monkeypatch):
    from tensorflow.python.util import dispatch

    class Mine(dispatch.GlobalOpDispatcher):
        pass

    before = survey()
    monkeypatch.setattr(dispatch, "_GLOBAL_DISPATCHERS", [*dispatch._GLOBAL_DISPATCHERS, Mine()])
    now = assert_noticed(before)
    assert [type(each) for each in newly_registered(before, now)] == [Mine]


def another_array() -> type[Any]:
    """Return a class of compiled code that is registered, as every other of its kind, under the name array.array."""
    spec = find_spec("array")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.array


def test_classes_of_compiled_code_may_have_one_name():
    """So have those that Cython makes: scipy, scikit-learn and pandas each bring some."""
    before = told(survey())
    arrays = [another_array(), another_array()]
    registered = registered_subclasses(collections.abc.MutableSequence)
    assert all(each in registered for each in arrays)
    assert told(survey()) == told(afresh()) == before


def test_classes_of_a_program_that_have_one_name_are_refused():
    def make() -> type[Any]:
        class Twin:
            pass

        return Twin

    twins = [collections.abc.Sized.register(make()), collections.abc.Sized.register(make())]
    assert twins[0] is not twins[1]
    with pytest.raises(NoKeyError, match="Sized has two registered subclasses of one name"):
        registered_subclasses(collections.abc.Sized)
    del twins
    gc.collect()  # the register holds weak references
    registered_subclasses(collections.abc.Sized)


def test_a_survey_that_is_broken_off_is_not_used(monkeypatch):
    before = survey()

    def fail(*_: object) -> str:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(module.Surveyor, "_text", fail)
        module._Latest.surveyor = None
        with pytest.raises(RuntimeError):
            survey()
    assert told(survey()) == told(before)


def test_what_an_entry_keeps_of_a_survey(monkeypatch):
    import tensorflow as tf
    from keras.src.backend.tensorflow import nn

    before = survey()
    kept = before.encoded(before)
    assert before.differing(kept) == []
    monkeypatch.setattr(nn, "glowplug_value", 1, raising=False)
    monkeypatch.setattr(tf, "abs", tf.sign)
    monkeypatch.setattr(tf, "glowplug_new", 1, raising=False)  # a name that the entry does not know says nothing
    assert survey().differing(kept) == ["keras.src.backend.tensorflow.nn", "tensorflow.abs"]
    monkeypatch.undo()
    assert survey().differing(kept) == []
    assert survey().differing(Survey({}, {}, (), (), frozenset()).encoded(before)) == []
