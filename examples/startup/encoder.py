"""A small transformer encoder for the training examples."""

import keras


def build(blocks=6, width=64, length=32, words=1000):
    tokens = keras.Input([length], dtype="int32")
    x = keras.layers.Embedding(words, width)(tokens)
    for _ in range(blocks):
        attended = keras.layers.MultiHeadAttention(4, width // 4)(x, x)
        x = keras.layers.LayerNormalization()(x + attended)
        hidden = keras.layers.Dense(4 * width, activation="gelu")(x)
        x = keras.layers.LayerNormalization()(x + keras.layers.Dense(width)(hidden))
    return keras.Model(tokens, keras.layers.Dense(words)(x))
