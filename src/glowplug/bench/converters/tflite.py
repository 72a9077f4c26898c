"""TensorFlow's converter as a user would call it: tflite.py SAVED_MODEL SIGNATURE OUTPUT. Run as a script."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Convert one signature, float32, no quantisation."""
    import tensorflow as tf

    source, signature, output = sys.argv[1:]
    converter = tf.lite.TFLiteConverter.from_saved_model(source, signature_keys=[signature])
    Path(output).write_bytes(converter.convert())


if __name__ == "__main__":
    main()
