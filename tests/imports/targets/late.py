"""Prints the course of random numbers and other settings: after the import, and after what was put off is used."""

import decimal
import locale
import logging
import os
import random
import signal
import sys
import warnings

import numpy as np

random.seed(5)
np.random.seed(5)
import keras
import tensorflow as tf


def shown():
    mine = [str(one[2]) for one in warnings.filters if one[2] in (UserWarning, FutureWarning, ResourceWarning)]
    print(random.random(), np.random.random(), mine, logging.root.level, logging.root.handlers)
    print(
        locale.setlocale(locale.LC_ALL), decimal.getcontext(), sys.path, signal.getsignal(signal.SIGUSR1), np.geterr()
    )
    print(sorted(os.environ.items()), sys.excepthook, sys.getrecursionlimit())


shown()
keras.utils.set_random_seed(7)
warnings.simplefilter("error", FutureWarning)
warnings.filterwarnings("ignore", category=UserWarning)
logging.root.setLevel(logging.ERROR)
os.environ["HDF5_PLUGIN_PATH"] = "mine"
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
model.summary(print_fn=lambda text: None)
shown()
keras.callbacks.RemoteMonitor()
import h5py
import psutil
import requests

print(requests.Session, h5py.File, psutil.Process)
shown()
for name in ("compat.v1", "lite", "distribute", "feature_column", "raw_ops", "tpu", "experimental.numpy", "test"):
    value = tf
    for part in name.split("."):
        value = getattr(value, part)
    dir(value)
shown()
print(keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)]).get_weights()[0].tolist())
position = [one[2].__name__ for one in warnings.filters]
print([name for name in position if name in ("FutureWarning", "UserWarning", "FileModeWarning", "DependencyWarning")])
