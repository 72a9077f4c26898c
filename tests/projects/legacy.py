"""Projects around Keras 2 and TensorFlow 1: TensorFlow Probability, Recommenders, Text, Agents, Spektral and others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

MODELS: dict[str, Callable[[Path], Any]] = {}
OP_LIBRARIES: dict[str, tuple[str, ...]] = {}
keras = tf.keras


def model(name: str, *libraries: str) -> Callable[[Callable[[Path], Any]], Callable[[Path], Any]]:
    def register(function: Callable[[Path], Any]) -> Callable[[Path], Any]:
        MODELS[name] = function
        OP_LIBRARIES[name] = libraries
        return function

    return register


def function(name: str, *specs: tf.TensorSpec, libraries: tuple[str, ...] = ()) -> Any:
    """Register a function of tensors; what it closes over comes from a call without arguments."""

    def register(make: Callable[[], Callable[..., Any]]) -> None:
        def build(directory: Path) -> None:
            keras.utils.set_random_seed(3)
            module = tf.Module()
            made = make()
            body, *module.held = made if isinstance(made, tuple) else (made,)
            module.call = tf.function(body, input_signature=specs)
            tf.saved_model.save(module, str(directory), signatures={"serving_default": module.call})

        MODELS[name] = build
        OP_LIBRARIES[name] = libraries

    return register


VECTOR = tf.TensorSpec([None], tf.float32, "x")
MATRIX = tf.TensorSpec([None, 4], tf.float32, "x")
SEED = tf.TensorSpec([2], tf.int32, "seed")


def _distribution(name: str, make: Callable[[Any], Any]) -> None:
    @function(f"TensorFlow Probability:{name} log_prob", VECTOR)
    def log_prob() -> Any:
        import tensorflow_probability as tfp

        return lambda x: {"y": make(tfp.distributions).log_prob(tf.abs(x) % 0.9 + 0.05)}

    @function(f"TensorFlow Probability:{name} sample", SEED)
    def sample() -> Any:
        import tensorflow_probability as tfp

        return lambda seed: {"y": make(tfp.distributions).sample(7, seed=seed)}


_distribution("Normal", lambda d: d.Normal(0.5, 2.0))
_distribution("Gamma", lambda d: d.Gamma(2.0, 3.0))
_distribution("Beta", lambda d: d.Beta(2.0, 3.0))
_distribution("StudentT", lambda d: d.StudentT(3.0, 0.0, 1.0))
_distribution("MixtureSameFamily", lambda d: d.MixtureSameFamily(d.Categorical([0.1, 0.4]), d.Normal([0.0, 1.0], 1.0)))


@function("TensorFlow Probability:GaussianProcess", tf.TensorSpec([None, 1], tf.float32, "x"))
def gaussian_process() -> Any:
    import tensorflow_probability as tfp

    seen = np.linspace(-1, 1, 6, dtype="float32")[:, None]
    kernel = tfp.math.psd_kernels.ExponentiatedQuadratic()

    def predict(x: Any) -> Any:
        process = tfp.distributions.GaussianProcessRegressionModel(
            kernel, index_points=x, observation_index_points=seen, observations=tf.sin(seen[:, 0])
        )
        return {"mean": process.mean(), "stddev": process.stddev()}

    return predict


@function("TensorFlow Probability:HiddenMarkovModel", tf.TensorSpec([None, 5], tf.float32, "x"))
def hidden_markov() -> Any:
    import tensorflow_probability as tfp

    d = tfp.distributions

    def predict(x: Any) -> Any:
        chain = d.HiddenMarkovModel(
            d.Categorical([0.2, 0.8]), d.Categorical([[0.7, 0.3], [0.2, 0.8]]), d.Normal([0.0, 15.0], [5.0, 10.0]), 5
        )
        return {"mode": chain.posterior_mode(x), "log_prob": chain.log_prob(x)}

    return predict


@model("TensorFlow Probability:Variational layers")
def variational(directory: Path) -> Any:
    import tensorflow_probability as tfp

    layers = [keras.layers.Input((4,)), tfp.layers.DenseFlipout(8), keras.layers.Dense(2)]
    return keras.Sequential(layers)


@model("TensorFlow Recommenders:BruteForce")
def brute_force(directory: Path) -> None:
    import tensorflow_recommenders as tfrs

    query = keras.Sequential(
        [keras.layers.Input((1,), dtype=tf.int32), keras.layers.Embedding(50, 8), keras.layers.Flatten()]
    )
    index = tfrs.layers.factorized_top_k.BruteForce(query, k=3)
    index.index(tf.random.stateless_normal([20, 8], [1, 2]), tf.range(20))
    index(tf.constant([[1]]))
    tf.saved_model.save(index, str(directory))


@model("TensorFlow Recommenders:DCN")
def cross(directory: Path) -> Any:
    import tensorflow_recommenders as tfrs

    i = keras.Input((6,))
    return keras.Model(i, keras.layers.Dense(1)(tfrs.layers.dcn.Cross(projection_dim=3)(i, i)))


@model("TensorFlow Recommenders:DotInteraction")
def dot_interaction(directory: Path) -> Any:
    import tensorflow_recommenders as tfrs

    inputs = [keras.Input((4,)) for _ in range(3)]
    return keras.Model(inputs, tfrs.layers.feature_interaction.DotInteraction()(inputs))


def _graph_network(name: str, make: Callable[[Any], Any]) -> None:
    """Keras cannot save layers of Spektral, which wrap their calls: a function of the model is saved."""
    specs = (tf.TensorSpec([None, 10, 4], tf.float32, "x"), tf.TensorSpec([None, 10, 10], tf.float32, "a"))

    @function(f"Spektral:{name}", *specs)
    def network() -> Any:
        from spektral import layers

        x, a = keras.Input((10, 4)), keras.Input((10, 10))
        made = keras.Model([x, a], make(layers)([x, a]))
        return (lambda x, a: {"y": made([x, a], training=False)}), made.variables


_graph_network("GCN", lambda layers: layers.GCNConv(8, activation="relu"))
_graph_network("GAT", lambda layers: layers.GATConv(8, attn_heads=2))


@model("TF-Agents:QNetwork")
def q_network(directory: Path) -> None:
    from tf_agents.networks import q_network as networks
    from tf_agents.specs import tensor_spec

    network = networks.QNetwork(
        tensor_spec.TensorSpec([4], tf.float32), tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
    )
    network.create_variables()

    class Policy(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        @tf.function(input_signature=[MATRIX])
        def call(self, x: Any) -> Any:
            return {"q": network(x)[0]}

    made = Policy()
    tf.saved_model.save(made, str(directory), signatures={"serving_default": made.call})


@model("keras-tcn:TCN")
def tcn(directory: Path) -> Any:
    from tcn import TCN

    i = keras.Input((20, 3))
    return keras.Model(i, keras.layers.Dense(1)(TCN(8)(i)))


@model("EfficientNet:EfficientNetB0")
def efficient_net(directory: Path) -> Any:
    import efficientnet.tfkeras as efficient

    return efficient.EfficientNetB0(weights=None, input_shape=(64, 64, 3), classes=10)


@model("image-classifiers:ResNet18")
def resnet18(directory: Path) -> Any:
    from classification_models.tfkeras import Classifiers

    make, _ = Classifiers.get("resnet18")
    return make((64, 64, 3), classes=10, weights=None)


@model("image-classifiers:SEResNet18")
def seresnet18(directory: Path) -> Any:
    from classification_models.tfkeras import Classifiers

    make, _ = Classifiers.get("seresnet18")
    return make((64, 64, 3), classes=10, weights=None)


def _tuner(name: str) -> None:
    @model(f"KerasTuner:{name}")
    def build(directory: Path) -> Any:
        import keras_tuner

        return getattr(keras_tuner.applications, name)(input_shape=(64, 64, 3), classes=3).build(
            keras_tuner.HyperParameters()
        )


for one in ("HyperResNet", "HyperXception"):
    _tuner(one)


def _legacy_application(name: str) -> None:
    @model(f"tf_keras.applications:{name}")
    def build(directory: Path) -> Any:
        return getattr(keras.applications, name)(weights=None, input_shape=(64, 64, 3), classes=10)


for one in (
    "MobileNetV2",
    "ResNet50",
    "DenseNet121",
    "EfficientNetV2B0",
    "MobileNetV3Small",
    "ConvNeXtTiny",
    "RegNetX002",
):
    _legacy_application(one)


def _deepctr(name: str) -> None:
    @model(f"DeepCTR:{name}")
    def build(directory: Path) -> Any:
        from deepctr import models
        from deepctr.feature_column import DenseFeat, SparseFeat

        columns = [SparseFeat("user", 20, 4), SparseFeat("item", 30, 4), DenseFeat("age", 1)]
        return getattr(models, name)(columns, columns, dnn_hidden_units=(8, 4))


for one in ("DeepFM", "xDeepFM", "DCN", "WDL", "FNN"):
    _deepctr(one)


@model("TensorFlow 1:frozen convolution")
def tensorflow_1(directory: Path) -> None:
    from tests import zoo

    zoo.BUILDERS["tf1_variables"](directory)


@model("TensorFlow 1:vocabulary and loops")
def tensorflow_1_vocabulary(directory: Path) -> None:
    from tests import zoo

    zoo.BUILDERS["tf1_vocabulary"](directory)
