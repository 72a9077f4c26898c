"""`steps_per_execution`: several steps in one call, cached as one is."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow


def _run(steps: int, *, unrolled: int = 1) -> list[Any]:
    from tests.train import models

    model = models.small(metrics=(), steps_per_execution=steps)
    model.unrolled_steps_per_execution = unrolled
    x, y = models.data()
    found: list[Any] = [model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history["loss"]]
    found.append(float(model.evaluate(x, y, batch_size=6, verbose=0)))
    found.append(model.predict(x, batch_size=4, verbose=0).tolist())
    found.append(float(model.train_on_batch(x[:4], y[:4])))
    found.append(_numbers(model))
    return found


def _numbers(model: Any) -> list[Any]:
    """Return how often the optimizer was applied: no step may run twice."""
    return [int(model.optimizer.iterations.numpy()), *(each.tolist() for each in model.get_weights())]


@pytest.mark.parametrize(("steps", "unrolled"), [(3, 1), (4, 2)])
def test_several_steps_per_execution(steps, unrolled, tmp_path):
    from glowplug import train

    expected = _run(steps, unrolled=unrolled)
    with train.enabled(tmp_path / "cache"):
        assert _run(steps, unrolled=unrolled) == expected
        counted = train.counts()
        assert counted["stored"] == counted["traced"], counted
        assert _run(steps, unrolled=unrolled) == expected
        assert train.counts()["restored"] == counted["traced"] == train.counts()["traced"]


def test_the_number_of_steps_is_part_of_the_key(tmp_path):
    from glowplug import train

    expected = [_run(steps) for steps in (2, 3)]
    with train.enabled(tmp_path / "cache"):
        assert [_run(steps) for steps in (2, 3)] == expected
