"""A watched loop: what grows is named, with its slope and its line; what does not grow is not."""

from __future__ import annotations

import threading
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from glowplug import train
from glowplug.train.growth_report import Place, judge, slope

pytestmark = pytest.mark.tensorflow

HERE = __file__


def lines_with(mark: str) -> list[int]:
    return [number for number, line in enumerate(Path(HERE).read_text().splitlines(), 1) if f"# {mark}" in line]


def growing(watch):
    return {growth.name: growth for growth in watch.report().growing}


def test_variables_that_are_kept():
    kept = []
    with train.watch() as watch:
        for _ in watch.rounds(range(8)):
            kept += [tf.Variable(1.0), tf.Variable(2.0)]  # kept variables
    found = growing(watch)["variables"]
    assert found.per_round == pytest.approx(2)
    assert (found.places[0].file, found.places[0].line) == (HERE, lines_with("kept variables")[0])
    assert "variables: +2.0 a round" in str(watch.report())


def test_variables_that_are_dropped_do_not_grow():
    with train.watch() as watch:
        for _ in watch.rounds(range(8)):
            tf.Variable(1.0)
    assert "variables" not in growing(watch)


def test_traces_by_python_value():
    function = tf.function(lambda x: x + 1)
    with train.watch() as watch:
        for number in range(8):
            function(number)  # traced each time
            watch.round()
    found = growing(watch)["traces"]
    assert found.per_round == pytest.approx(1)
    assert found.places[0].line == lines_with("traced each time")[0]


def test_operations_of_a_graph():
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session, train.watch() as watch:
        for _ in watch.rounds(range(8)):
            v1.get_variable(f"v{_}", (2,))
            session.run(v1.global_variables_initializer())  # adds operations
    found = growing(watch)["graph_operations"]
    assert found.per_round > 2
    assert lines_with("adds operations")[0] in [place.line for place in found.places]


def test_threads():
    stop, started = threading.Event(), []
    try:
        with train.watch() as watch:
            for _ in watch.rounds(range(8)):
                started.append(threading.Thread(target=stop.wait))
                started[-1].start()  # a thread a round
        found = growing(watch)["threads"]
        assert found.per_round == pytest.approx(1, abs=0.2)
        assert found.places[0].line == lines_with("a thread a round")[0]
    finally:
        stop.set()
        for thread in started:
            thread.join()


def test_memory():
    kept = []
    with train.watch() as watch:
        for _ in watch.rounds(range(8)):
            kept.append(np.ones(1_000_000))
    assert growing(watch)["rss_bytes"].per_round == pytest.approx(8e6, rel=0.3)


def test_a_model_that_is_rebuilt_and_one_that_starts_anew():
    x, y = tf.ones((8, 4)), tf.ones((8, 1))

    def build():
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        return model

    with train.watch() as watch:
        for _ in watch.rounds(range(6)):
            build().train_on_batch(x, y)  # rebuilt
    assert growing(watch)["traces"].places[0].line == lines_with("rebuilt")[0]
    model = build()
    with train.watch() as watch:
        for _ in watch.rounds(range(6)):
            train.reinitialize(model)
            model.train_on_batch(x, y)
    assert not {"traces", "variables", "functions", "graph_operations"} & set(growing(watch))


def test_hooks_are_taken_off_even_after_an_error():
    before = threading.Thread.start, tf.Graph._create_op_internal
    with pytest.raises(ZeroDivisionError), train.watch():
        raise ZeroDivisionError
    assert (threading.Thread.start, tf.Graph._create_op_internal) == before


def test_judging():
    assert slope([1, 3, 5, 7]) == pytest.approx(2)
    assert slope([4, 4, 4]) == 0
    flat = judge({"traces": [0, 40, 41, 41, 41, 41]}, {})
    assert not flat.growing
    assert "nothing grows" in str(flat)
    jump = judge({"rss_bytes": [0, 0, 0, 0, 0, 10**9, 10**9, 10**9]}, {})
    assert not jump.growing  # one step is no slope
    grows = judge({"traces": [1, 2, 3, 4, 5, 6]}, {"traces": (Place("a.py", 3, 9),)})
    assert "traces: +1.0 a round (3 to 6), made at a.py:3" in str(grows)
    assert "too few" in str(judge({"traces": [1, 2]}, {}))
