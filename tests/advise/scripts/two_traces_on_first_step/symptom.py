"""The first trace of the step creates variables of model and optimizer, so it is traced again."""

import keras
import tensorflow as tf

model = keras.Sequential([keras.layers.Dense(16, activation="relu") for _ in range(25)])
optimizer = keras.optimizers.Adam()


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for _ in range(3):
    step(tf.ones([8, 16]), tf.ones([8, 16]))
