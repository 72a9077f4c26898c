"""Write two SavedModels of one network: with every block's own functions, and with the served one alone."""

import sys
from pathlib import Path

import tensorflow as tf

FOLDER = Path(sys.argv[1])


class Block(tf.Module):
    def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(tf.ones([8, 8]) / 8)

    @tf.function
    def __call__(self, x, training=False):
        y = tf.nn.relu(tf.matmul(x, self.kernel)) + x
        return y * 0.5 if training else y


class Network(tf.Module):
    def __init__(self):
        super().__init__()
        self.blocks = [Block() for _ in range(120)]

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32)])
    def serve(self, x):
        for block in self.blocks:
            x = block(x)
        return x


network = Network()
for block in network.blocks:
    for training in (False, True):
        for batch in (1, None):
            block.__call__.get_concrete_function(tf.TensorSpec([batch, 8], tf.float32), training=training)
tf.saved_model.save(network, str(FOLDER / "every_block"), signatures=network.serve)

lean = tf.Module()
lean.kernels = [block.kernel for block in network.blocks]


@tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32)])
def serve(x):
    for kernel in lean.kernels:
        x = tf.nn.relu(tf.matmul(x, kernel)) + x
    return x


tf.saved_model.save(lean, str(FOLDER / "served_only"), signatures=serve.get_concrete_function())
