"""Models of every kind: stock, traced once and restored agree to the bit."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow

NAMES = [
    "several_inputs_and_outputs",
    "outputs_without_names",
    "recurrent",
    "embedding_and_attention",
    "convolutions",
    "subclassed",
    "predicted_before_it_is_trained",
    "own_train_step",
    "own_metrics",
    "weights_for_samples_and_classes",
    "metrics_with_state",
    "mixed_precision",
    "optimizer_with_everything",
    "regularized_with_added_losses",
    "lambda_and_functions",
    "datasets_of_every_kind",
    "frozen_and_shared",
    "compiled_by_xla",
    "normalization_that_was_adapted",
    "preprocessing_with_random_numbers",
]


def test_the_list_is_the_zoo():
    from tests.train import zoo

    assert list(zoo.ZOO) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_stock_first_and_restored_agree(name, tmp_path):
    import keras

    from glowplug import train
    from tests.train import zoo

    def fresh():
        keras.backend.clear_session()  # the same automatic names, as in a new process
        return zoo.ZOO[name]()

    expected = fresh()
    with train.enabled(tmp_path / "cache"):
        first = fresh()
        counts = train.counts()
    assert first == expected
    assert "refused" not in counts, counts
    with train.enabled(tmp_path / "cache"):
        second = fresh()
        assert set(train.counts()) == {"restored"}, train.counts()
    assert second == expected
