"""The helpers for tuners: as many models as shapes, as many traces as models, and a word where that cannot be."""

from __future__ import annotations

import threading

import keras
import numpy as np
import pytest

from glowplug import train
from glowplug.core.errors import UsageError

pytestmark = pytest.mark.tensorflow

X, Y = np.ones((8, 4), "float32"), np.ones((8, 1), "float32")


def build(width):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(width), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.5), "mse")
    return model


def functions_of(models):
    """Every train function that the models have had: one each, if none was made again."""
    return {id(model.train_function) for model, _ in models._models.values()}


def test_an_optuna_study_has_a_model_for_each_shape():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seen, starts = [], []

    def evaluate(model, trial):
        assert float(model.optimizer.learning_rate) == 0.5  # as it was compiled, whatever the trial before had
        model.optimizer.learning_rate = trial.suggest_float("rate", 1e-4, 1e-2)
        starts.append(np.array(model.weights[0]).sum())
        loss = model.fit(X, Y, verbose=0).history["loss"][-1]
        seen.append(id(model.train_function))
        return loss

    objective = train.optuna_objective(build, lambda trial: {"width": 3 + trial.number % 2}, evaluate)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(objective, n_trials=8)
    assert len(objective.models) == 2
    assert set(seen) == functions_of(objective.models)
    assert len(set(starts)) == 8  # fresh weights in each
    assert len(study.trials) == 8


def test_two_threads_do_not_train_one_model():
    inside, leave = threading.Event(), threading.Event()

    class Trial:
        number = 1

    def evaluate(model, trial):
        inside.set()
        leave.wait(60)
        return 0.0

    objective = train.optuna_objective(build, lambda trial: {"width": 3}, evaluate)
    thread = threading.Thread(target=objective, args=[Trial()])
    thread.start()
    assert inside.wait(60)
    with pytest.raises(UsageError, match="n_jobs=1"):
        objective(Trial())
    leave.set()
    thread.join()
    assert objective(Trial()) == 0.0


def test_a_trial_that_compiles_is_told():
    class Trial:
        number = 1

    def evaluate(model, trial):
        model.compile("adam", "mse")
        return 0.0

    with pytest.warns(UserWarning, match="compiled its model again"):
        train.optuna_objective(build, lambda trial: {"width": 3}, evaluate)(Trial())


def test_a_search_of_keras_tuner(tmp_path):
    pytest.importorskip("tensorboard", reason="Keras Tuner imports it and does not ask for it")
    keras_tuner = pytest.importorskip("keras_tuner")

    def adjust(model, hp):
        model.optimizer.learning_rate = hp.Float("rate", 1e-4, 1e-2)

    hypermodel = train.keras_tuner_build(build, lambda hp: {"width": hp.Choice("width", [3, 4])}, adjust)
    tuner = keras_tuner.RandomSearch(
        hypermodel, objective="val_loss", max_trials=6, seed=1, directory=tmp_path, overwrite=True
    )
    tuner.search(X, Y, validation_data=(X, Y), verbose=0)
    assert len(hypermodel.models) == 2
    assert len(tuner.get_best_models()) == 1
    assert 1e-4 <= float(tuner.get_best_models()[0].optimizer.learning_rate) <= 1e-2
