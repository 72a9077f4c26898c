"""What people do today: copy a SavedModel from S3 with s3fs, then load it: copy_then_load.py PATH SHAPE DTYPE."""

import json
import os
import sys
import tempfile
import time

import s3fs

path, shape, dtype = sys.argv[1:]
client = s3fs.S3FileSystem(
    key=os.environ["AWS_ACCESS_KEY_ID"],
    secret=os.environ["AWS_SECRET_ACCESS_KEY"],
    endpoint_url=os.environ["AWS_ENDPOINT_URL"],
)
with tempfile.TemporaryDirectory(dir=os.environ["COPIES"]) as folder:
    client.get(path, folder + "/model", recursive=True)
    copied_at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    import numpy as np
    import tensorflow as tf

    model = tf.saved_model.load(folder + "/model")
    loaded_at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    call = model.signatures["serving_default"]
    (name,) = call.structured_input_signature[1]
    call(**{name: tf.constant(np.ones([int(size) for size in shape.split(",")], dtype))})
    first_at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    print(json.dumps({"copied_at_ns": copied_at_ns, "loaded_at_ns": loaded_at_ns, "first_at_ns": first_at_ns}))
