"""Imports TensorFlow and does something else."""

import json

import tensorflow as tf  # the line

print(json.dumps({"tensorflow": tf.__name__}))
