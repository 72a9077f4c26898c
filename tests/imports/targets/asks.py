"""Asks for parts of the API in the order of its arguments, and uses what it gets: asks.py [NAME ...]"""

import importlib
import inspect
import pickle
import pydoc
import sys

import keras
import tensorflow as tf
from tensorflow.lite.python import interpreter  # noqa: F401 - binds a package of the name of a page

for name in sys.argv[1:]:
    found = tf
    for part in name.split("."):
        found = getattr(found, part)
    print(
        name,
        type(found),
        getattr(found, "__module__", None),
        inspect.ismodule(found),
        len(pydoc.render_doc(found)) > 100,
    )

print(tf.lite.__name__, type(tf.compat.v1), tf.distribute.MirroredStrategy, "tpu" in dir(tf), tf.raw_ops.Abs(x=-1))
print(pickle.loads(pickle.dumps(tf.nn.RNNCellDropoutWrapper)) is tf.nn.RNNCellDropoutWrapper)
print(importlib.reload(tf.lite) is tf.lite, issubclass(tf.test.TestCase, object))
print(inspect.signature(tf.abs), repr(inspect.signature(tf.raw_ops.Abs)), inspect.getfullargspec(tf.matmul).args)
for code in ("tf.nothing", "from tensorflow import nothing", "import tensorflow.nothing", "tf.nn.nothing"):
    try:
        exec(code)
    except Exception as error:
        print(type(error).__name__, error)
with tf.GradientTape() as tape:
    x = tf.Variable(2.0)
    y = tf.image.resize(tf.reshape(x, (1, 1, 1, 1)), (2, 2)) + keras.ops.sin(x)
print(tape.gradient(y, x).numpy(), tf.function(lambda a: a + 1)(tf.constant(1)).numpy())
import tensorflow.compat.v1 as tf1

print(tf1.__name__, tf1.Session.__module__, type(tf1))
print(sorted(set(tf.__all__) - set(dir(tf))))
