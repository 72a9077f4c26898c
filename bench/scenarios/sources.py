"""The models of the scenarios, random weights with a fixed seed, built once into bench/.cache: sources.py [NAME ...]

Names of growth scenarios carry their size: weights-100 is a model with about 100 MB of weights, nodes-500 a chain of
500 operations.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import machine
import models

CACHE = machine.CACHE / "scenarios"
WORDS = 20_000
LAYER_MB, LAYER_WIDTH = 10.24, 1_600


def path_of(name: str) -> Path:
    """Return the file or folder of a scenario's model, built in a process of its own where it is missing."""
    path = CACHE / (f"{name}.keras" if name in KERAS_MODELS else name)
    if not path.exists():
        print(f"building {name} ...", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, __file__, name], check=True)
    return path


def efficientnet_b0():
    import keras

    return keras.applications.EfficientNetB0(weights=None)


def mobilenet_v3():
    import keras

    return keras.applications.MobileNetV3Large(input_shape=(224, 224, 3), weights=None)


def lstm_text():
    """Sentences in, a class out: the vocabulary is part of the model."""
    import keras
    from keras import layers

    texts = keras.Input((1,), dtype="string", name="text")
    vocabulary = [f"word{number}" for number in range(WORDS)]
    ids = layers.TextVectorization(output_sequence_length=64, vocabulary=vocabulary)(texts)
    x = layers.LSTM(128)(layers.Embedding(WORDS + 2, 128)(ids))
    return keras.Model(texts, layers.Dense(2)(x))


def build_jpeg_image(path: Path) -> None:
    """Bytes of JPEG files in, classes out: the image is decoded, resized and scaled by the model."""
    import keras
    import tensorflow as tf

    network = keras.applications.MobileNetV3Small(weights=None, include_preprocessing=True)
    models.unsettle(network)

    class Classifier(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "image_bytes")])
        def classify(self, image_bytes):
            def decode(data):
                return tf.image.resize(tf.io.decode_jpeg(data, channels=3), (224, 224))

            images = tf.map_fn(decode, image_bytes, fn_output_signature=tf.TensorSpec((224, 224, 3), tf.float32))
            return {"classes": self.network(images, training=False)}

    module = Classifier()
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.classify})


def build_weights(path: Path, megabytes: int) -> None:
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(1)
    layers = max(1, round(megabytes / LAYER_MB))

    class Wide(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            shape = (LAYER_WIDTH, LAYER_WIDTH)
            self.layers = [
                tf.Variable(random.standard_normal(shape, np.float32) / np.float32(40)) for _ in range(layers)
            ]

        @tf.function(input_signature=[tf.TensorSpec([None, LAYER_WIDTH], tf.float32, "x")])
        def __call__(self, x):
            for weight in self.layers:
                x = tf.nn.relu(tf.matmul(x, weight))
            return {"y": x}

    module = Wide()
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.__call__})


def build_nodes(path: Path, count: int) -> None:
    import tensorflow as tf

    class Deep(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 16], tf.float32, "x")])
        def __call__(self, x):
            for number in range(count):
                x = tf.sin(x) if number % 2 else tf.cos(x)
            return {"y": x}

    module = Deep()
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.__call__})


KERAS_MODELS = {
    "dense": models.dense,
    "resnet50": models.resnet50,
    "efficientnet_b0": efficientnet_b0,
    "mobilenet_v3": mobilenet_v3,
    "encoder": models.encoder,
    "lstm_text": lstm_text,
}
SCENARIOS = (*KERAS_MODELS, "jpeg_image")
GROWING = {"weights": build_weights, "nodes": build_nodes}


def build(name: str, path: Path) -> None:
    kind, _, size = name.partition("-")
    if name in KERAS_MODELS:
        model = KERAS_MODELS[name]()
        models.unsettle(model)
        model.save(path)
    elif kind in GROWING and size:
        GROWING[kind](path, int(size))
    elif name == "jpeg_image":
        build_jpeg_image(path)
    else:
        sys.exit(f"there is no scenario {name}: it is one of {', '.join(SCENARIOS)}, weights-MB or nodes-N")


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras

    CACHE.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or SCENARIOS:
        keras.utils.set_random_seed(1)
        suffix = ".keras" if name in KERAS_MODELS else ""
        unfinished = CACHE / f".{name}_{os.getpid()}{suffix}"
        build(name, unfinished)
        unfinished.rename(CACHE / f"{name}{suffix}")


if __name__ == "__main__":
    main()
