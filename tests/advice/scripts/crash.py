"""Fails before TensorFlow has computed anything."""

import tensorflow as tf

raise RuntimeError(tf.__name__)
