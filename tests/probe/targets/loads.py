"""Loads weights in every other format: HDF5 model, checkpoint, TensorFlow 1 checkpoint, safetensors. FOLDER"""

import sys
from pathlib import Path

import keras
import numpy as np
import safetensors.numpy
import tensorflow as tf

folder = Path(sys.argv[1])
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256), keras.layers.Dense(8)])

model.save(str(folder / "model.h5"))
keras.models.load_model(str(folder / "model.h5"), compile=False)

variable = tf.Variable(tf.ones([256, 256]), name="weights")
path = tf.train.Checkpoint(weights=variable).save(str(folder / "checkpoint"))
again = tf.Variable(tf.zeros([256, 256]), name="again")
tf.train.Checkpoint(weights=again).restore(path).assert_existing_objects_matched()

safetensors.numpy.save_file({"a": np.ones((64, 64), "float32")}, str(folder / "a.safetensors"))
safetensors.numpy.load_file(str(folder / "a.safetensors"))

with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    old = tf.compat.v1.get_variable("old", initializer=np.ones((600, 600), "float32"))
    saver = tf.compat.v1.train.Saver()
    session.run(tf.compat.v1.global_variables_initializer())
    saver.save(session, str(folder / "old"))
    saver.restore(session, str(folder / "old"))
