"""A restored step is traced as well, later: a right one is noted, a wrong one stops the run."""

from __future__ import annotations

import json

import pytest

from glowplug.train.verify.probation import EVERY, Probation

pytestmark = pytest.mark.tensorflow


class Holder:
    """An object whose text holds its address: the one thing about it that no key has."""


@pytest.fixture(autouse=True)
def as_usual(monkeypatch):
    monkeypatch.setenv("GLOWPLUG_TRACE_VERIFY", "probation")


def model_with(holder, text):
    from keras import layers

    from tests.train import models

    class Addressed(layers.Layer):
        def call(self, x):
            return x * (2.0 if f"{holder}" == text else 3.0)

    return models.small(custom=Addressed)


def test_the_first_restore_and_one_in_twenty_are_due(tmp_path):
    due = []
    for number in range(1, 3 * EVERY):
        probation = Probation(tmp_path, "entry")
        if probation.restored():
            due.append(number)
            if number > 2:  # the first two programs ended too soon
                probation.found_right()
    assert due == [1, 2, 3, 3 + EVERY, 3 + 2 * EVERY]


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"count": "x"}'])
def test_a_damaged_count_is_none(tmp_path, damaged):
    (tmp_path / "entry.restores").write_text(damaged)
    assert Probation(tmp_path, "entry").restored()


def test_off_means_off_and_always_means_always(tmp_path, monkeypatch):
    probation = Probation(tmp_path, "entry")
    monkeypatch.setenv("GLOWPLUG_TRACE_VERIFY", "off")
    assert not probation.restored()
    probation.found_right()
    monkeypatch.setenv("GLOWPLUG_TRACE_VERIFY", "always")
    assert probation.restored()


def test_a_right_restore_is_noted_and_changes_nothing(tmp_path, monkeypatch):
    from glowplug import train
    from tests.train import models

    monkeypatch.setenv("GLOWPLUG_TRACE_VERIFY", "always")
    with train.enabled(tmp_path / "cache"):
        first = models.trained(models.small())
        assert models.trained(models.small()) == first
        assert train.counts() == {"traced": 1, "stored": 1, "restored": 1, "verified": 1}
    (counts,) = (tmp_path / "cache").glob("*.restores")
    assert json.loads(counts.read_text()) == {"count": 1, "verified_at": 1}


def test_a_program_that_ends_sooner_is_looked_at_when_it_ends(tmp_path):
    from glowplug import train
    from glowplug.train.verify import second_opinion
    from tests.train import models

    with train.enabled(tmp_path / "cache"):
        models.trained(models.small())
        model = models.small()
        models.trained(model)
        assert "verified" not in train.counts()
        second_opinion._at_exit()
        assert train.counts()["verified"] == 1


def test_a_wrong_restore_stops_the_run_at_its_next_step_and_says_where(tmp_path, monkeypatch):
    import keras

    from glowplug import train
    from glowplug.core.errors import WrongTraceError
    from tests.train import models

    first, second = Holder(), Holder()
    monkeypatch.setenv("GLOWPLUG_TRACE_VERIFY", "always")
    with train.enabled(tmp_path / "cache"):
        models.trained(model_with(first, f"{first}"))
        assert train.counts()["stored"] == 1
        keras.utils.clear_session()  # texts may show automatic names: they begin again, as in the next process
        with pytest.raises(WrongTraceError, match="in the stored trace"):
            models.trained(model_with(second, f"{first}"))
        assert train.counts()["different"] == 1
    assert not list((tmp_path / "cache").glob("*.trace"))
    assert not list((tmp_path / "cache").glob("*.restores"))


def predictions(model, x):
    return [model.predict_on_batch(x[:count]).tolist() for count in (4, 3, 3, 4)]


def fits(model, x):
    import tensorflow as tf

    def fit(count, steps):
        data = tf.data.Dataset.from_tensor_slices((x, [0] * len(x))).repeat().batch(count, drop_remainder=True)
        return model.fit(data, steps_per_epoch=steps, verbose=0).history["loss"]

    return [fit(4, 1), fit(3, 2), fit(4, 1)]


@pytest.mark.parametrize("use", [predictions, fits])
def test_a_trace_that_can_no_longer_be_made_is_not_taken_for_a_wrong_one(use, tmp_path, monkeypatch):
    """The more general of two traces is looked at first: TensorFlow would use it for the other as well."""
    from glowplug import train
    from tests.train import models

    x, _ = models.data()
    with train.enabled(tmp_path / "cache"):
        monkeypatch.setenv("GLOWPLUG_TRACE_VERIFY", "off")
        first = use(models.small(), x)
        monkeypatch.setenv("GLOWPLUG_TRACE_VERIFY", "always")
        assert use(models.small(), x) == first
        assert train.counts() == {"traced": 2, "stored": 2, "restored": 2, "verified": 1}
