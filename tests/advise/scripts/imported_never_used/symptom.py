"""A tool that imports TensorFlow at the top and answers without it."""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--train", action="store_true")
if parser.parse_args().train:
    print(tf.reduce_sum(tf.ones([4])))
