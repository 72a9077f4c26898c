"""The wire messages of TensorFlow Serving's API as classes, from descriptors of our own in a pool of their own.

There is no generated code: protobuf's versions differ across TensorFlow's releases, and messages of the same names that
TensorFlow registers in the default pool of the same process must not collide with these.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

_DESCRIPTORS = Path(__file__).parent / "protos" / "messages.desc"


@cache
def pool() -> Any:
    """Return the private descriptor pool."""
    from google.protobuf import descriptor_pb2, descriptor_pool

    made = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(_DESCRIPTORS.read_bytes()).file:
        made.AddSerializedFile(file.SerializeToString())
    return made


@cache
def message(name: str) -> Any:
    """Return the class of a message by its full name, such as `tensorflow.serving.PredictRequest`."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(pool().FindMessageTypeByName(name))


def serving(name: str) -> Any:
    """Return the class of a message of package `tensorflow.serving`."""
    return message(f"tensorflow.serving.{name}")
