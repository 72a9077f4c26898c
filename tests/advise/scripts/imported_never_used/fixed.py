"""A tool that imports TensorFlow where it needs it."""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--train", action="store_true")
if parser.parse_args().train:
    import tensorflow as tf

    print(tf.reduce_sum(tf.ones([4])))
