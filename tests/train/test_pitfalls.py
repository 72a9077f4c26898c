"""Programs that look alike and are not: the right result every time, in whatever order they use one cache."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow


def _cases(kind):
    """Return the names of the cases without importing TensorFlow."""
    import ast
    from pathlib import Path

    tree = ast.parse(Path(__file__).with_name("pitfalls.py").read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    names = [node.name for node in functions if any(getattr(mark, "id", "") == kind for mark in node.decorator_list)]
    # Each takes seconds: one in ten runs every time, all of them with the slow tests.
    return [pytest.param(name, marks=() if number % 10 == 0 else pytest.mark.slow) for number, name in enumerate(names)]


@pytest.mark.parametrize("name", _cases("different"))
def test_both_variants_are_right_whatever_is_cached(name, tmp_path):
    import keras

    from glowplug import train
    from tests.train import pitfalls

    def run(variant):
        keras.backend.clear_session()
        return pitfalls.DIFFERENT[name](variant)

    expected = [run(0), run(1)]
    assert expected[0] != expected[1]
    with train.enabled(tmp_path / "cache"):
        assert [run(0), run(1)] == expected
    with train.enabled(tmp_path / "cache"):
        assert [run(1), run(0)] == expected[::-1]


@pytest.mark.parametrize("name", _cases("unstable"))
def test_what_looks_outside_is_never_restored(name, tmp_path):
    import keras

    from glowplug import train
    from tests.train import pitfalls

    pitfalls.FOLDER[:] = [tmp_path]
    with train.enabled(tmp_path / "cache"):
        for _ in range(2):
            keras.backend.clear_session()
            pitfalls.UNSTABLE[name]()
        assert train.counts()["refused"] == train.counts()["traced"] == 2
    assert not list((tmp_path / "cache").glob("*.trace"))
