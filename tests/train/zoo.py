"""Models and loops of many kinds. Each entry trains from fixed seeds and returns everything it computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

ZOO: dict[str, Callable[[], Any]] = {}


def entry(run: Callable[[], Any]) -> Callable[[], Any]:
    def seeded() -> Any:
        keras.utils.set_random_seed(11)
        return run()

    ZOO[run.__name__] = seeded
    return seeded


def _numbers(*shape: int, seed: int = 5) -> Any:
    return np.random.default_rng(seed).random(shape, "float32")


def _fit(model: Any, x: Any, y: Any = None, **options: Any) -> Any:
    options = {"epochs": 2, "batch_size": 4, "shuffle": False, "verbose": 0, **options}
    history = model.fit(x, y, **options).history
    return {name: [float(value) for value in values] for name, values in history.items()}


@entry
def several_inputs_and_outputs() -> Any:
    a, b = keras.Input((3,), name="a"), keras.Input((2,), name="b")
    joined = layers.Concatenate()([layers.Dense(4)(a), b])
    model = keras.Model([a, b], [layers.Dense(1, name="one")(joined), layers.Dense(2, name="two")(joined)])
    model.compile("adam", {"one": "mse", "two": "mae"}, loss_weights={"one": 1.0, "two": 0.5}, metrics=["mse", "mae"])
    x = {"a": _numbers(10, 3), "b": _numbers(10, 2)}
    y = {"one": _numbers(10, 1), "two": _numbers(10, 2)}
    result = [_fit(model, x, y, validation_split=0.2), model.evaluate(x, y, verbose=0, return_dict=True)]
    return [*result, [each.tolist() for each in model.predict(x, verbose=0)]]


@entry
def outputs_without_names() -> Any:
    a = keras.Input((3,))
    model = keras.Model(a, [layers.Dense(1)(a), layers.Dense(2)(a)])
    model.compile("sgd", ["mse", "mae"])
    return _fit(model, _numbers(8, 3), [_numbers(8, 1), _numbers(8, 2)])


@entry
def recurrent() -> Any:
    model = keras.Sequential(
        [
            keras.Input((None, 4)),
            layers.Masking(),
            layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
            layers.GRU(2, dropout=0.2),
            layers.Dense(1),
        ]
    )
    model.compile("rmsprop", "mse")
    return _fit(model, _numbers(6, 5, 4), _numbers(6, 1))


@entry
def embedding_and_attention() -> Any:
    ids = keras.Input((6,), dtype="int32")
    x = layers.Embedding(20, 8)(ids) + layers.Embedding(6, 8)(keras.ops.arange(6))
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4, dropout=0.1)(x, x))
    model = keras.Model(ids, layers.Dense(3)(x[:, 0]))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return _fit(model, np.arange(60).reshape(10, 6) % 20, np.arange(10) % 3)


@entry
def convolutions() -> Any:
    x = inputs = keras.Input((8, 8, 3))
    for _ in range(2):
        y = layers.Conv2D(4, 3, padding="same", use_bias=False)(x)
        y = layers.BatchNormalization()(y)
        x = layers.ReLU()(y) if x.shape[-1] != 4 else layers.ReLU()(y + x)
    model = keras.Model(inputs, layers.Dense(2, activation="softmax")(layers.GlobalAveragePooling2D()(x)))
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True), "sparse_categorical_crossentropy")
    return _fit(model, _numbers(9, 8, 8, 3), np.arange(9) % 2)


class Subclassed(keras.Model):  # type: ignore[misc]
    """Not built until it is called."""

    def __init__(self, scale: float = 2.0) -> None:
        super().__init__()
        self.first = layers.Dense(4, activation="relu")
        self.second = layers.Dense(1)
        self.scale = scale

    def call(self, x: Any, training: bool = False) -> Any:
        y = self.first(x)
        if training:
            y = y * self.scale
        return self.second(y)


@entry
def subclassed() -> Any:
    model = Subclassed()
    model.compile("adam", "mse", metrics=["mae"])
    x, y = _numbers(9, 3), _numbers(9, 1)
    return [_fit(model, x, y), model.evaluate(x, y, verbose=0), model.predict(x, verbose=0).tolist()]


@entry
def predicted_before_it_is_trained() -> Any:
    model = Subclassed()
    x, y = _numbers(9, 3), _numbers(9, 1)
    before = model.predict(x, verbose=0, batch_size=4).tolist()
    model.compile("adam", "mse")
    return [before, _fit(model, x, y), model.predict(x, verbose=0, batch_size=4).tolist()]


class OwnStep(keras.Model):  # type: ignore[misc]
    """The train step of Keras' own guide."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


@entry
def own_train_step() -> Any:
    inputs = keras.Input((3,))
    model = OwnStep(inputs, layers.Dense(1)(inputs))
    model.compile("adam", "mse", metrics=["mae"])
    return _fit(model, _numbers(9, 3), _numbers(9, 1))


class OwnMetrics(keras.Model):  # type: ignore[misc]
    """Its own loss tracker and optimizer step, nothing compiled but the optimizer."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(1)
        self.tracker = keras.metrics.Mean(name="loss")

    def build(self, shape: Any) -> None:
        self.dense.build(shape)

    def call(self, x: Any) -> Any:
        return self.dense(x)

    @property
    def metrics(self) -> Any:
        return [self.tracker]

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = keras.ops.mean(keras.ops.square(self(x) - y))
        self.optimizer.apply(tape.gradient(loss, self.trainable_weights), self.trainable_weights)
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}


@entry
def own_metrics() -> Any:
    model = OwnMetrics()
    model.build((None, 3))
    model.compile("adam")
    return _fit(model, _numbers(9, 3), _numbers(9, 1))


@entry
def weights_for_samples_and_classes() -> Any:
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
    x, y = _numbers(9, 3), np.arange(9) % 2
    first = _fit(model, x, y, sample_weight=np.arange(9, dtype="float32"))
    return [first, _fit(model, x, y, class_weight={0: 1.0, 1: 3.0})]


@entry
def metrics_with_state() -> Any:
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2, activation="softmax")])
    model.compile(
        "adam", "categorical_crossentropy", metrics=[keras.metrics.AUC(), keras.metrics.F1Score(), "accuracy"]
    )
    x, y = _numbers(12, 3), np.eye(2, dtype="float32")[np.arange(12) % 2]
    model.fit(x, y, verbose=0, shuffle=False)
    return [np.asarray(value).tolist() for value in model.evaluate(x, y, verbose=0)]


@entry
def mixed_precision() -> Any:
    model = keras.Sequential([keras.Input((3,)), layers.Dense(4, dtype="mixed_float16"), layers.Dense(1)])
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam()), "mse")
    return _fit(model, _numbers(9, 3), _numbers(9, 1))


@entry
def optimizer_with_everything() -> Any:
    model = keras.Sequential([keras.Input((3,)), layers.Dense(4, name="kept"), layers.Dense(1)])
    schedule = keras.optimizers.schedules.CosineDecay(0.1, 10, warmup_target=0.2, warmup_steps=2)
    optimizer = keras.optimizers.AdamW(
        schedule,
        weight_decay=0.1,
        use_ema=True,
        ema_overwrite_frequency=2,
        gradient_accumulation_steps=2,
        clipnorm=1.0,
    )
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    model.compile(optimizer, "mse")
    return _fit(model, _numbers(9, 3), _numbers(9, 1))


@entry
def regularized_with_added_losses() -> Any:
    class Adds(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            self.add_loss(0.1 * keras.ops.mean(x))
            return x

    dense = layers.Dense(4, kernel_regularizer="l2", activity_regularizer=keras.regularizers.L1(0.01))
    model = keras.Sequential([keras.Input((3,)), dense, Adds(), layers.Dense(1, kernel_constraint="unit_norm")])
    model.compile("sgd", keras.losses.Huber())
    return _fit(model, _numbers(9, 3), _numbers(9, 1))


@entry
def lambda_and_functions() -> Any:
    factor = 3.0

    def own_loss(y_true: Any, y_pred: Any) -> Any:
        return keras.ops.mean(keras.ops.abs(y_true - y_pred), axis=-1) * factor

    model = keras.Sequential([keras.Input((3,)), layers.Lambda(lambda x: x * factor), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(lambda: 0.05), own_loss)
    return _fit(model, _numbers(9, 3), _numbers(9, 1))


@entry
def datasets_of_every_kind() -> Any:
    def model() -> Any:
        made = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
        made.compile("sgd", "mse")
        return made

    x, y = _numbers(8, 3), _numbers(8, 1)

    def generator() -> Any:
        for _ in range(3):
            yield x[:4], y[:4]

    pieces = tf.data.Dataset.from_tensor_slices((x, y))
    return [
        _fit(model(), pieces.batch(4), batch_size=None),
        _fit(model(), pieces.batch(4, drop_remainder=True).repeat(), batch_size=None, steps_per_epoch=3),
        _fit(model(), generator(), batch_size=None, epochs=1),
        _fit(model(), pieces.batch(3), batch_size=None, validation_data=pieces.batch(2)),
    ]


@entry
def frozen_and_shared() -> Any:
    inputs = keras.Input((3,))
    shared = layers.Dense(3)
    base = keras.Model(inputs, shared(shared(inputs)))
    base.trainable = False
    model = keras.Sequential([keras.Input((3,)), base, layers.Dense(1)])
    model.compile("adam", "mse")
    first = _fit(model, _numbers(9, 3), _numbers(9, 1))
    base.trainable = True
    model.compile("adam", "mse")
    return [first, _fit(model, _numbers(9, 3), _numbers(9, 1))]


@entry
def compiled_by_xla() -> Any:
    model = keras.Sequential([keras.Input((3,)), layers.Dense(4, activation="gelu"), layers.Dense(1)])
    model.compile("adam", "mse", jit_compile=True)
    return _fit(model, _numbers(8, 3), _numbers(8, 1))


@entry
def normalization_that_was_adapted() -> Any:
    adapted = layers.Normalization()
    adapted.adapt(_numbers(20, 3, seed=9))
    model = keras.Sequential([keras.Input((3,)), adapted, layers.Dense(1)])
    model.compile("adam", "mse")
    return _fit(model, _numbers(9, 3), _numbers(9, 1))


@entry
def preprocessing_with_random_numbers() -> Any:
    model = keras.Sequential(
        [
            keras.Input((6, 6, 1)),
            layers.RandomFlip(),
            layers.RandomRotation(0.1),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    return _fit(model, _numbers(9, 6, 6, 1), _numbers(9, 1))
