"""Reads `.tflite` files without an interpreter, so that a hostile one is refused before an interpreter sees it."""
