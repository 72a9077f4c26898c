"""A blocking load inside a coroutine. SAVED_MODEL"""

import asyncio
import sys

import tensorflow as tf


async def main():
    tf.saved_model.load(sys.argv[1])


asyncio.run(main())
tf.saved_model.load(sys.argv[1])
