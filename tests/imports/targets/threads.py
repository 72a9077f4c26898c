"""Threads that ask at once for pages which are put off: each gets the page, whoever imports it."""

import threading

import tensorflow as tf

found = []
start = threading.Barrier(6)


def ask(number: int) -> None:
    start.wait()
    found.append((number, tf.distribute.has_strategy(), tf.distribute.get_strategy().num_replicas_in_sync))
    found.append((number, tf.lite.Optimize.DEFAULT.name, hasattr(tf.xla, "experimental")))


threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(found, key=repr))
