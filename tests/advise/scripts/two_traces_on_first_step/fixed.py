"""Every variable exists before the first step: one trace."""

import keras
import tensorflow as tf

model = keras.Sequential([keras.layers.Dense(16, activation="relu") for _ in range(25)])
model.build([None, 16])
optimizer = keras.optimizers.Adam()
optimizer.build(model.trainable_variables)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for _ in range(3):
    step(tf.ones([8, 16]), tf.ones([8, 16]))
