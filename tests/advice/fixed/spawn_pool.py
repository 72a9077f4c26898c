"""One process for all tasks."""

import multiprocessing


def task(number):
    import tensorflow as tf

    return float(tf.reduce_sum(tf.ones([number])))


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print([pool.apply(task, [number]) for number in (1, 2, 3)])
