"""`skip_init`: no initialiser runs, nothing is forgotten, nothing stays behind."""

from __future__ import annotations

import threading

import pytest

from glowplug.core.errors import WeightsError

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def runs(monkeypatch):
    """Count the runs of Keras' random initialiser."""
    import keras

    found = []
    stock = keras.initializers.GlorotUniform.__call__

    def counted(self, *args, **kwargs):
        found.append(1)
        return stock(self, *args, **kwargs)

    monkeypatch.setattr(keras.initializers.GlorotUniform, "__call__", counted)
    return found


def saved(tmp_path, name="model.weights.h5"):
    from tests.train import models

    model = models.small()
    x, y = models.data()
    model.fit(x, y, verbose=0)
    (model.save_weights if name.endswith(".weights.h5") else model.save)(tmp_path / name)
    return model, tmp_path / name


def same_weights(first, second):
    import numpy as np

    return all(np.array_equal(a, b) for a, b in zip(first.get_weights(), second.get_weights(), strict=True))


def test_weights_that_are_loaded_are_not_initialised(tmp_path, runs):
    from glowplug import train
    from tests.train import models

    model, path = saved(tmp_path)
    runs.clear()
    with train.skip_init():
        other = models.small()
        other.load_weights(path)
    assert runs == []
    assert same_weights(model, other)
    assert other.predict(models.data()[0], verbose=0).shape == (20, 3)
    other.fit(*models.data(), verbose=0)


def test_no_memory_is_touched(tmp_path):
    import keras

    from glowplug import train

    def resident():
        with open("/proc/self/statm") as stream:  # noqa: PTH123
            return int(stream.read().split()[1]) * 4096

    before = resident()
    with pytest.raises(WeightsError), train.skip_init():
        model = keras.Sequential([keras.Input((10_000,)), keras.layers.Dense(20_000)])
    assert model.count_params() > 200_000_000
    assert resident() - before < 50_000_000


def test_what_was_forgotten_is_named(tmp_path):
    import numpy as np

    from glowplug import train
    from tests.train import models

    with pytest.raises(WeightsError, match=r"dense/bias, .*beta.* and 2 more") as caught, train.skip_init():  # noqa: PT012
        model = models.small()
        model.layers[0].kernel.assign(np.zeros((6, 5)))
    assert "dense/kernel" not in str(caught.value)


def test_many_names_are_shortened():
    import keras

    from glowplug import train

    made = []  # what nobody holds any more is not missed
    with pytest.raises(WeightsError, match="and 15 more"), train.skip_init():
        made.append(keras.Sequential([keras.Input((1,)), *(keras.layers.Dense(1) for _ in range(10))]))


def test_a_call_before_the_weights_are_there_raises(tmp_path):
    import numpy as np

    from glowplug import train
    from tests.train import models

    with pytest.raises(WeightsError, match="dense/kernel"), train.skip_init():  # noqa: PT012
        model = models.small()
        model(np.zeros((1, 6), "float32"))


def test_reading_a_weight_before_it_is_there_raises():
    from glowplug import train
    from tests.train import models

    with pytest.raises(WeightsError, match=r"read before.*dense/kernel"), train.skip_init():  # noqa: PT012
        model = models.small()
        model.layers[0].kernel.numpy()


def test_a_layer_that_is_called_on_numbers_while_a_model_is_built(tmp_path):
    import keras
    import numpy as np

    from glowplug import train

    def build():
        ids = keras.Input((4,), dtype="int32")
        positions = keras.layers.Embedding(4, 8)(keras.ops.arange(4))
        x = keras.layers.Embedding(10, 8)(ids) + positions
        return keras.Model(ids, keras.layers.Dense(2)(x)), positions

    model, _ = build()
    model.save_weights(tmp_path / "m.weights.h5")
    with train.skip_init():
        other, positions = build()
        other.load_weights(tmp_path / "m.weights.h5")
    assert same_weights(model, other)
    assert float(keras.ops.std(positions)) > 0  # Keras' own initialiser ran
    assert np.isfinite(other(np.zeros((1, 4), "int32"))).all()


def test_a_subclassed_model_that_is_called_to_be_built_raises():
    import numpy as np

    from glowplug import train
    from tests.train import zoo

    with pytest.raises(WeightsError, match="read before"), train.skip_init():
        zoo.Subclassed()(np.zeros((1, 3), "float32"))


def test_an_error_of_the_users_is_not_hidden():
    from glowplug import train
    from tests.train import models

    with pytest.raises(KeyError), train.skip_init():  # noqa: PT012
        models.small()
        raise KeyError("mine")


def test_keras_is_as_before_after_the_block(runs):
    from keras.src.backend.tensorflow.core import Variable
    from keras.src.layers.layer import Layer

    from glowplug import train
    from tests.train import models

    stock = Variable._initialize_with_initializer, Layer.add_weight, Layer.__call__
    made = []
    with pytest.raises(WeightsError), train.skip_init():
        made.append(models.small())
    assert (Variable._initialize_with_initializer, Layer.add_weight, Layer.__call__) == stock
    runs.clear()
    models.small()
    assert len(runs) == 2


def test_other_threads_do_not_notice(runs):
    import keras

    from glowplug import train

    made = []

    def build():
        made.append(keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)]).get_weights())

    with train.skip_init():
        thread = threading.Thread(target=build)
        thread.start()
        thread.join()
    assert len(runs) == 1
    assert made[0][0].shape == (2, 2)


def test_a_subclassed_model_that_is_built_inside(tmp_path):
    from glowplug import train
    from tests.train import zoo

    model = zoo.Subclassed()
    model.build((None, 3))
    model.save_weights(tmp_path / "m.weights.h5")
    with train.skip_init():
        other = zoo.Subclassed()
        other.build((None, 3))
        other.load_weights(tmp_path / "m.weights.h5")
    assert same_weights(model, other)


def test_optimizers_and_metrics_start_as_always(tmp_path):
    from glowplug import train
    from tests.train import models

    _, path = saved(tmp_path)
    with train.skip_init():
        model = models.small()
        model.optimizer.build(model.trainable_variables)
        assert int(model.optimizer.iterations) == 0
        assert all(float(abs(value.numpy()).max()) == 0 for value in model.optimizer._momentums)
        model.load_weights(path)


@pytest.mark.parametrize("name", ["model.keras", "model.h5"])
def test_load_model_skips_by_itself(name, tmp_path, runs):
    import keras

    from glowplug import train
    from tests.train import models

    model, path = saved(tmp_path, name)
    runs.clear()
    with train.enabled(tmp_path / "cache"):
        loaded = keras.models.load_model(path)
    assert runs == []
    assert same_weights(model, loaded)
    x, y = models.data()
    assert loaded.evaluate(x, y, verbose=0) == model.evaluate(x, y, verbose=0)
    keras.models.load_model(path)
    assert len(runs) == 2


def test_load_model_initialises_what_the_file_lacks(tmp_path, runs):
    import keras
    import numpy as np

    from glowplug import train

    class Extra(keras.layers.Layer):
        def build(self, shape):
            self.kept = self.add_weight(shape=(3,), initializer="ones", name="kept")
            self.extra = self.add_weight(shape=(3,), initializer=keras.initializers.GlorotUniform(5), name="extra")

        def call(self, x):
            return x * self.kept * self.extra

        def save_own_variables(self, store):
            store["0"] = self.kept

        def load_own_variables(self, store):
            self.kept.assign(store["0"])

    model = keras.Sequential([keras.Input((3,)), Extra()])
    model.layers[0].kept.assign([4.0, 5.0, 6.0])
    model.save(tmp_path / "m.keras")
    expected = keras.models.load_model(tmp_path / "m.keras", custom_objects={"Extra": Extra})
    with train.enabled(tmp_path / "cache"):
        loaded = keras.models.load_model(tmp_path / "m.keras", custom_objects={"Extra": Extra})
    assert same_weights(expected, loaded)
    assert np.array_equal(loaded.layers[0].kept, [4.0, 5.0, 6.0])


def test_a_layer_that_reads_its_weights_while_it_is_built_loads_as_in_keras(tmp_path):
    import keras

    from glowplug import train

    class Reads(keras.layers.Layer):
        def build(self, shape):
            self.kernel = self.add_weight(shape=(3,), initializer="ones", name="kernel")
            self.total = float(keras.ops.sum(self.kernel.value))

        def call(self, x):
            return x * self.kernel

    model = keras.Sequential([keras.Input((3,)), Reads()])
    model.save(tmp_path / "m.keras")
    with train.enabled(tmp_path / "cache"):
        loaded = keras.models.load_model(tmp_path / "m.keras", custom_objects={"Reads": Reads})
    assert loaded.layers[0].total == 3.0


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
@pytest.mark.parametrize("scope", ["strategy", "creator"])
def test_load_model_where_others_make_the_variables_is_stock(scope, suffix, tmp_path):
    import keras
    import tensorflow as tf

    from glowplug import train
    from tests.train import models

    path = str(tmp_path / f"model{suffix}")
    models.small().save(path)

    def loaded():
        made = []

        def creator(following, **options):
            made.append(options["shape"])
            return following(**options)

        strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
        with strategy.scope() if scope == "strategy" else tf.variable_creator_scope(creator):
            model = keras.models.load_model(path)
        kinds = [type(variable.value).__name__ for variable in [*model.variables, *model.optimizer.variables]]
        return kinds, made, [each.tolist() for each in model.get_weights()]

    expected = loaded()
    with train.enabled(tmp_path / "cache"):
        assert loaded() == expected
