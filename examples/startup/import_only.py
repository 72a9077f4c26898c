"""Import TensorFlow and do nothing."""

import tensorflow  # noqa: F401
