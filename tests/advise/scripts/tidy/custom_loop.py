"""A training step of one's own, with every variable made first."""

import keras
import tensorflow as tf

model = keras.Sequential([keras.Input([8]), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam()
optimizer.build(model.trainable_variables)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    optimizer.apply_gradients(
        zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
    )
    return loss


for _ in range(5):
    step(tf.ones([4, 8]), tf.ones([4, 1]))
