"""A stored trace gives the same results as a fresh one, in this process and in the next."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import json, sys
from glowplug import train
if sys.argv[1] != "stock":
    train.enable(sys.argv[1])
sys.path.insert(0, {tests!r})
from train import models
result = models.trained(models.small(custom=models.Scaled), also=True)
x, y = models.data()
model = models.small()
result.append([float(model.train_on_batch(x[:n], y[:n])[0]) for n in (8, 8, 4)])
result.append(float(model.test_on_batch(x[:8], y[:8])[0]))
result.append(model.predict_on_batch(x[:2]).tolist())
print(json.dumps([result, train.counts()]))
"""


def test_the_next_process_restores_every_step_and_computes_the_same_bits(tmp_path, run_script):
    script = SCRIPT.format(tests=str(Path(__file__).parents[1]))
    cache = str(tmp_path / "cache")
    stock, nothing = run_script(script, "stock")
    first, counts_first = run_script(script, cache)
    second, counts_second = run_script(script, cache)
    assert nothing == {}
    assert first == stock
    assert second == stock
    assert counts_first["stored"] == counts_first["traced"] >= 7
    assert counts_second == {"restored": counts_first["traced"]}


def test_a_second_model_of_the_same_architecture_reuses_the_trace(tmp_path):
    from glowplug import train
    from tests.train import models

    expected = models.trained(models.small(), also=True)
    with train.enabled(tmp_path / "cache"):
        first = models.trained(models.small(), also=True)
        traced = train.counts()["traced"]
        second = models.trained(models.small(), also=True)
        assert train.counts()["traced"] == traced
        assert train.counts()["restored"] == traced
    assert first == second == expected


def test_disable_puts_keras_back(tmp_path):
    from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

    from glowplug import train

    stock = TensorFlowTrainer._make_function, TensorFlowTrainer.make_predict_function
    train.enable(tmp_path / "cache")
    assert TensorFlowTrainer._make_function is not stock[0]
    train.disable()
    assert (TensorFlowTrainer._make_function, TensorFlowTrainer.make_predict_function) == stock


def test_a_model_outlives_the_session_it_was_compiled_in(tmp_path):
    from glowplug import train
    from tests.train import models

    with train.enabled(tmp_path / "cache"):
        model = models.small()
        before = models.trained(model)
    after = models.trained(model)
    plain = models.small()
    assert [before, after] == [models.trained(plain), models.trained(plain)]


def test_enabled_nests(tmp_path):
    from glowplug import train
    from tests.train import models

    train.enable(tmp_path / "outer")
    with train.enabled(tmp_path / "inner"):
        models.trained(models.small(), epochs=1)
    assert train.counts() == {}
    models.trained(models.small(), epochs=1)
    assert train.counts()["stored"] == train.counts()["traced"]
    assert len(list((tmp_path / "outer").glob("*.trace"))) == len(list((tmp_path / "inner").glob("*.trace")))


def test_one_trace_where_stock_makes_two(tmp_path):
    from glowplug import train
    from tests.train import models

    calls = []

    class Counting(models.layers.Layer):
        def call(self, x):
            calls.append(1)
            return x

    x, y = models.data()
    model = models.small(custom=Counting)
    calls.clear()
    model.fit(x, y, verbose=0)
    assert len(calls) == 2
    with train.enabled(tmp_path / "cache"):
        model = models.small(custom=Counting)
        calls.clear()
        model.fit(x, y, verbose=0)
    assert len(calls) == 1


def test_a_partial_batch_and_then_other_sizes(tmp_path):
    from glowplug import train
    from tests.train import models

    x, y = models.data()

    def run():
        model = models.small()
        return [float(model.train_on_batch(x[:n], y[:n])[0]) for n in (8, 5, 3, 7)]

    expected = run()
    with train.enabled(tmp_path / "cache"):
        first = run()
        # Stock TensorFlow relaxes the second trace to any batch size; the third and fourth call use it.
        assert train.counts()["traced"] == 2
        second = run()
        assert train.counts() == {"traced": 2, "stored": 2, "restored": 2}
    assert first == second == expected
